"""The last look around the chosen batch size, on simulated devices whose best batch size is known."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpudoctor.model.tuning import OK, OUT_OF_MEMORY, Measurement, Recommendation, Trial
from gpudoctor.tuning.executor import Effort
from gpudoctor.tuning.known import EFFORT, Known, Limits
from gpudoctor.tuning.last_look import last_look, smaller, tight
from gpudoctor.tuning.recommend import recommend
from gpudoctor.tuning.search import SearchResult, result_of, search, without_failures
from tests.tuning.simulated_device import PLAIN, Scenario, SimulatedDevice

STEEP = replace(PLAIN, fragmentation=0.2, stubborn=0.2, thrash=1.02, fixed_seconds=8.0)
"""The throughput grows almost as the batch; the cache takes 20 % of what is allocated, and most of it can be freed."""


def limits_of(scenario: Scenario) -> Limits:
    return Limits(memory_bytes=scenario.memory_bytes)


def advice(device: SimulatedDevice, limits: Limits | None = None) -> Recommendation:
    limits = limits or limits_of(device.scenario)
    result = search(device, "fp32", limits, lambda _: None)
    found = recommend(device, [result], [device.compare("fp32")], limits)
    assert found is not None
    return found


def is_tight(scenario: Scenario, size: int) -> bool:
    return scenario.held("fp32", size) > scenario.memory_bytes


def largest_calm(scenario: Scenario) -> int:
    return max(size for size in range(1, 2000) if not is_tight(scenario, size))


def test_a_tight_batch_that_is_faster_is_recommended_and_says_what_it_costs() -> None:
    found = advice(SimulatedDevice(STEEP))
    assert is_tight(STEEP, found.batch_size)
    assert STEEP.fits("fp32", found.batch_size)
    assert STEEP.rate("fp32", found.batch_size) > 1.02 * STEEP.rate("fp32", largest_calm(STEEP))
    assert found.max_batch_size == found.batch_size
    assert found.throughput == pytest.approx(STEEP.rate("fp32", found.batch_size), rel=0.01)
    assert any("frees cached memory at each step" in sentence for sentence in found.why)
    assert any("PYTORCH_ALLOC_CONF=expandable_segments:True" in sentence for sentence in found.why)


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"thrash": 1.3}, id="freeing memory costs more than it gains"),
        pytest.param({"stubborn": 1.0}, id="it runs out of memory"),
        pytest.param({"fixed_seconds": 0.01}, id="a larger batch gains nothing"),
        pytest.param({"spills": True}, id="memory goes on in the host's"),
        pytest.param({"measures_memory": False}, id="the device tells no memory"),
    ],
)
def test_what_is_not_worth_it_is_not_recommended(changes: dict[str, float]) -> None:
    scenario = replace(STEEP, **changes)  # type: ignore[arg-type]
    device = SimulatedDevice(scenario)
    limits = limits_of(scenario) if scenario.measures_memory else Limits()
    found = advice(device, limits)
    assert not is_tight(scenario, found.batch_size) or not scenario.measures_memory
    assert not any("frees cached memory" in sentence for sentence in found.why)
    if scenario.measures_memory:
        assert sum(m.status == OUT_OF_MEMORY for m in device.trials) <= 1


def test_a_batch_just_above_a_tile_gives_way_to_a_smaller_one() -> None:
    """Steps of up to 100 samples take as long as one of 100, and those above as long as one of 200."""
    device = SimulatedDevice(replace(PLAIN, tile=100, tile_share=1.0))
    measured = [device.measure(Trial(precision="fp32", batch_size=size), EFFORT) for size in (25, 50, 110)]
    found = result_of("fp32", tuple(measured), limits_of(PLAIN))
    assert found.best is not None
    assert found.best.batch_size == 110
    looked = last_look(device, found, replace(limits_of(PLAIN), largest_batch=120), lambda _: None)
    assert looked.best is not None
    assert looked.best.batch_size == 96


@pytest.mark.parametrize(
    "limits",
    [Limits(drifts=True), Limits(effective_batch=1024), Limits(deadline=0.0)],
    ids=["CPU", "effective", "late"],
)
def test_there_is_no_look(limits: Limits) -> None:
    result = search(SimulatedDevice(STEEP), "fp32", limits_of(STEEP), lambda _: None)
    device = SimulatedDevice(STEEP)
    limits = replace(limits, memory_bytes=STEEP.memory_bytes)
    assert last_look(device, result, limits, lambda _: None).best == result.best
    assert device.trials == []


def test_a_search_that_was_cut_short_has_none() -> None:
    result = replace(search(SimulatedDevice(STEEP), "fp32", limits_of(STEEP), lambda _: None), cut_short=True)
    device = SimulatedDevice(STEEP)
    assert last_look(device, result, limits_of(STEEP), lambda _: None) is result
    assert device.trials == []


def test_a_tight_batch_that_fails_in_its_turn_is_not_recommended() -> None:
    class Filling(SimulatedDevice):
        """Runs a tight batch once."""

        def measure(self, trial: Trial, effort: Effort) -> Measurement:
            tried = sum(m.batch_size == trial.batch_size for m in self.trials)
            if tried and is_tight(self.scenario, trial.batch_size):
                return Measurement(precision="fp32", batch_size=trial.batch_size, status=OUT_OF_MEMORY)
            return super().measure(trial, effort)

    found = advice(Filling(STEEP))
    assert not is_tight(STEEP, found.batch_size)
    assert found.batch_size > 0.9 * largest_calm(STEEP)


def test_the_budget_ends_the_look() -> None:
    result = search(SimulatedDevice(STEEP), "fp32", limits_of(STEEP), lambda _: None)
    device = SimulatedDevice(STEEP)
    limits = replace(limits_of(STEEP), deadline=1.0)
    assert last_look(device, result, limits, lambda _: None).best == result.best
    assert len(device.trials) == 1


def ran(size: int, second: float, retries: int = 0, status: str = OK) -> Measurement:
    """Return a batch for each of whose samples a MiB is allocated, of a hundred that are held at 90."""
    return Measurement(
        precision="fp32",
        batch_size=size,
        status=status,
        step_seconds=(second,) * 4 if status == OK else (),
        samples_per_step=size,
        peak_memory_bytes=size * 90,
        reserved_memory_bytes=size * 100,
        resident_memory_bytes=0,
        allocation_retries=retries,
    )


GROWING = (ran(20, 1.0), ran(40, 1.0), ran(80, 1.0))


@pytest.mark.parametrize(
    ("measured", "limit", "size"),
    [
        pytest.param(GROWING, 8500, 87, id="three tenths of its cache are freed: 97 bytes a sample"),
        pytest.param(GROWING, 8060, 83, id="it gains 3.75 %"),
        pytest.param(GROWING, 8050, None, id="82 would gain 2.5 %"),
        pytest.param(GROWING, None, None, id="no limit is known"),
        pytest.param((*GROWING, ran(81, 1.0, retries=4)), 8500, None, id="one was measured"),
        pytest.param((*GROWING, ran(85, 1.0, status=OUT_OF_MEMORY)), 8500, None, id="85 failed"),
        pytest.param((*GROWING, ran(88, 1.0, status=OUT_OF_MEMORY)), 8500, 87, id="88 failed"),
        pytest.param((ran(80, 1.0),), 8500, None, id="no slope"),
        pytest.param(tuple(ran(10 * m.batch_size, 1.0) for m in GROWING), 85000, 872, id="a multiple of 8"),
        pytest.param((ran(20, 1.0), ran(40, 2.0), ran(80, 4.0)), 8500, None, id="a larger batch gains nothing"),
    ],
)
def test_the_tight_batch_to_try(measured: tuple[Measurement, ...], limit: int | None, size: int | None) -> None:
    assert tight(80, Known(measured, Limits(memory_bytes=limit))) == size


def test_no_tight_batch_above_what_the_user_allows() -> None:
    assert tight(80, Known(GROWING, Limits(memory_bytes=8500, largest_batch=83))) == 83
    assert tight(80, Known(GROWING, Limits(memory_bytes=8500, largest_batch=80))) is None


@pytest.mark.parametrize(
    ("seconds", "size"),
    [
        pytest.param({20: 1.0, 40: 2.0, 80: 4.1}, None, id="2.5 % more than promised"),
        pytest.param({20: 1.0, 40: 2.0, 80: 4.2}, 64, id="5 % more"),
        pytest.param({20: 1.0, 40: 2.0, 97: 6.0}, 64, id="96 is too near"),
        pytest.param({40: 2.0, 80: 4.2}, None, id="one smaller size promises nothing"),
        pytest.param({20: 1.0, 64: 3.2, 80: 4.2}, None, id="it was measured"),
        pytest.param({1: 1.0, 2: 2.0, 3: 4.0}, 2, id="2 of 3"),
    ],
)
def test_the_smaller_batch_to_try(seconds: dict[int, float], size: int | None) -> None:
    known = Known([ran(batch, second) for batch, second in seconds.items()], Limits())
    assert smaller(max(seconds), known) == (None if size in seconds else size)


def test_no_smaller_batch_below_what_the_user_allows() -> None:
    measured = [ran(20, 1.0), ran(40, 2.0), ran(80, 4.2)]
    assert smaller(80, Known(measured, Limits(smallest_batch=64))) == 64
    assert smaller(80, Known(measured, Limits(smallest_batch=65))) is None


def result(precision: str, *measurements: Measurement) -> SearchResult:
    return SearchResult(precision=precision, measurements=measurements, best=None, max_batch_size=None)


@pytest.mark.parametrize(
    ("found", "largest"),
    [
        pytest.param(
            result("fp32", ran(8, 1.0), ran(16, 1.0), ran(64, 1.0, status=OUT_OF_MEMORY)), 16, id="it ran out"
        ),
        pytest.param(result("fp32", ran(8, 1.0), ran(16, 1.0)), None, id="it did not"),
        pytest.param(result("bf16", ran(8, 1.0), ran(64, 1.0, status=OUT_OF_MEMORY)), None, id="smaller tensors"),
        pytest.param(result("fp32", ran(2, 1.0, status=OUT_OF_MEMORY)), None, id="nothing ran"),
    ],
)
def test_what_ran_out_of_memory_is_not_tried_where_tensors_are_as_large(
    found: SearchResult, largest: int | None
) -> None:
    limits = without_failures(Limits(), "tf32", {found.precision: found})
    assert limits.largest_batch == largest
    allowed = without_failures(Limits(largest_batch=12), "tf32", {found.precision: found})
    assert allowed.largest_batch == 12
