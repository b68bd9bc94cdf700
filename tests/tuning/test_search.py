"""The search of one precision, on simulated devices and on devices that go wrong."""

import math
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from gpudoctor.errors import WorkloadError
from gpudoctor.model.tuning import NUMERICS, OK, OUT_OF_MEMORY, UNSUPPORTED, Conditions, Measurement, Trial
from gpudoctor.tuning import policies, throughput
from gpudoctor.tuning.executor import BUDGET_ENDED, Effort
from gpudoctor.tuning.known import Known, Limits
from gpudoctor.tuning.policies import climb, confirm, knee, rungs
from gpudoctor.tuning.recommend import recommend
from gpudoctor.tuning.search import SearchResult, exhaustive, result_of, search
from tests.tuning.simulated_device import GIB, PLAIN, Scenario, SimulatedDevice

MIB = 2**20


def run(scenario: Scenario, noise: float = 0.0, limits: Limits | None = None) -> tuple[SearchResult, SimulatedDevice]:
    device = SimulatedDevice(scenario, noise)
    memory = scenario.memory_bytes if scenario.measures_memory else None
    return search(device, "fp32", limits or Limits(memory_bytes=memory), lambda _: None), device


def sizes(result: SearchResult) -> list[int]:
    return [m.batch_size for m in result.measurements]


def chosen(result: SearchResult) -> int:
    assert result.best is not None
    return result.best.batch_size


class Stubborn(SimulatedDevice):
    """A device on which some batch sizes end in their own way."""

    def __init__(self, scenario: Scenario, outcome: Callable[[int], str], detail: str = "") -> None:
        super().__init__(scenario, noise=0.0)
        self.outcome, self.detail = outcome, detail

    def measure(self, trial: Trial, effort: Effort) -> Measurement:
        measured = super().measure(trial, effort)
        status = self.outcome(trial.batch_size)
        return measured if status == OK else replace(measured, status=status, step_seconds=(), detail=self.detail)


def test_the_smallest_power_of_two_as_fast_as_the_best_is_the_answer() -> None:
    """A step costs as much as one sample: 64 samples miss the best by 1.4 %, 32 by 2.9 %."""
    result, _ = run(replace(PLAIN, fixed_seconds=0.001))
    assert chosen(result) == 64


def test_a_throughput_that_falls_again_is_left_behind() -> None:
    falling = replace(PLAIN, fixed_seconds=0.001, decline_from=100, decline=0.5)
    result, _ = run(falling)
    assert 32 <= chosen(result) <= 128


def test_if_throughput_still_rises_the_climb_goes_to_the_limit_without_passing_it() -> None:
    rising = replace(PLAIN, fixed_seconds=0.5)
    result, device = run(rising)
    assert all(m.status == OK for m in device.trials)
    assert rising.rate("fp32", chosen(result)) > 0.97 * max(rising.rate("fp32", size) for size in range(1, 1000))
    assert len(result.measurements) <= 8


def test_a_late_bend_of_the_memory_ends_in_no_failure() -> None:
    """As of an LSTM: until 25 samples the peak grows by a twentieth of what it grows by afterwards."""
    bent = replace(PLAIN, fixed_seconds=0.5, curves=((0.1 * GIB, 40e6), (1.0 * GIB, 2e6)))
    result, device = run(bent)
    assert all(m.status == OK for m in device.trials)
    assert bent.held("fp32", chosen(result)) > 0.9 * bent.memory_bytes


def test_the_memory_is_predicted_before_it_is_measured() -> None:
    result, _ = run(replace(PLAIN, fixed_seconds=0.5))
    first, *others = result.measurements
    assert first.predicted_memory_bytes is None
    last = others[-1]
    assert last.predicted_memory_bytes == pytest.approx(last.peak_memory_bytes, rel=0.001)


def test_the_largest_safe_batch_is_known_though_it_never_ran() -> None:
    result, _ = run(replace(PLAIN, fixed_seconds=0.0008))
    largest = result.max_batch_size
    assert largest is not None
    assert largest > max(sizes(result))
    assert PLAIN.held("fp32", largest) <= PLAIN.memory_bytes


def test_a_device_that_shows_no_memory_is_doubled_until_it_fails_and_bisected_once() -> None:
    silent = replace(PLAIN, measures_memory=False, fixed_seconds=0.5)
    result, device = run(silent)
    assert sizes(result)[:10] == [2, 4, 8, 16, 32, 64, 128, 256, 512, 1024]
    assert [m.batch_size for m in device.trials if m.status == OUT_OF_MEMORY] == [1024]
    assert chosen(result) == 768
    assert result.max_batch_size is not None
    assert result.max_batch_size < 1024


def test_memory_that_spills_to_the_host_shows_in_the_throughput() -> None:
    spilling = replace(PLAIN, spills=True, measures_memory=False, fixed_seconds=0.5)
    result, _ = run(spilling)
    assert spilling.held("fp32", chosen(result)) <= spilling.memory_bytes


def ran_at(*sizes: int, retries_at: int = 0, status: str = OK) -> Known:
    """Return what is known after these batch sizes: a fixed step time, and the one at `retries_at` did not go well."""
    return Known(
        (
            Measurement(
                precision="fp32",
                batch_size=size,
                status=status if size == retries_at else OK,
                step_seconds=() if size == retries_at and status != OK else (1.0,) * 4,
                samples_per_step=size,
                allocation_retries=4 if size == retries_at else 0,
            )
            for size in sizes
        ),
        Limits(),
    )


@pytest.mark.parametrize(
    ("known", "size"),
    [
        pytest.param(ran_at(32, 40, 45, retries_at=45), 42, id="halfway"),
        pytest.param(ran_at(40, 44, 45, retries_at=45), None, id="no size is between"),
        pytest.param(ran_at(512, 640, 700, retries_at=700), 664, id="a multiple"),
        pytest.param(ran_at(32, 40, 45, retries_at=45, status=OUT_OF_MEMORY), None, id="an error may be met again"),
        pytest.param(ran_at(100, 200, 203, retries_at=203), None, id="not worth a trial"),
    ],
)
def test_below_a_batch_that_had_to_free_memory_the_search_goes_on_between_rungs(known: Known, size: int | None) -> None:
    assert climb(known) == size


def test_one_slow_trial_is_noise_if_a_larger_batch_is_fast_again() -> None:
    def ran(size: int, rate: float) -> Measurement:
        return Measurement(precision="fp32", batch_size=size, step_seconds=(size / rate,) * 4, samples_per_step=size)

    fast, slow, again = ran(8, 100.0), ran(16, 20.0), ran(32, 120.0)
    assert Known((fast, slow, again), Limits()).largest == 32
    assert Known((fast, slow), Limits()).largest == 8
    assert Known((fast, slow, ran(32, 15.0)), Limits()).failed == (16, 32)


def test_an_unsupported_size_is_a_bound_and_no_refusal() -> None:
    device = Stubborn(replace(PLAIN, fixed_seconds=0.5), lambda size: UNSUPPORTED if size > 300 else OK)
    result = search(device, "fp32", Limits(memory_bytes=PLAIN.memory_bytes), lambda _: None)
    assert 128 <= chosen(result) <= 300
    assert result.max_batch_size is not None
    assert result.max_batch_size >= chosen(result)


def test_an_unsupported_precision_is_tried_once() -> None:
    result = search(SimulatedDevice(PLAIN), "bf16", Limits(memory_bytes=PLAIN.memory_bytes), lambda _: None)
    assert [m.status for m in result.measurements] == [UNSUPPORTED]
    assert result.best is None


def test_numbers_that_are_not_finite_end_the_precision() -> None:
    device = Stubborn(PLAIN, lambda size: NUMERICS if size > 4 else OK)
    result = search(device, "fp32", Limits(memory_bytes=PLAIN.memory_bytes), lambda _: None)
    assert result.best is None
    assert result.measurements[-1].status == NUMERICS


def test_what_never_fits_ends_at_one_sample() -> None:
    device = Stubborn(PLAIN, lambda size: OUT_OF_MEMORY)
    result = search(device, "fp32", Limits(memory_bytes=PLAIN.memory_bytes), lambda _: None)
    assert (sizes(result), result.best) == ([2, 1], None)


class NeedsTwo(SimulatedDevice):
    """As with batch normalisation: a single sample is an error of the user's code."""

    def measure(self, trial: Trial, effort: Effort) -> Measurement:
        if trial.batch_size == 1:
            raise WorkloadError("Expected more than 1 value per channel when training")
        return super().measure(trial, effort)


def test_a_single_sample_that_cannot_be_normalised_is_no_bug_if_two_did_not_fit() -> None:
    tight = replace(PLAIN, curves=((0.1 * GIB, 6e9),))
    result = search(NeedsTwo(tight), "fp32", Limits(memory_bytes=tight.memory_bytes), lambda _: None)
    assert (sizes(result), result.best) == ([2], None)


class FailsFrom(SimulatedDevice):
    """The user's code fails from a batch size on."""

    def __init__(self, size: int) -> None:
        super().__init__(PLAIN)
        self.size = size

    def measure(self, trial: Trial, effort: Effort) -> Measurement:
        if trial.batch_size >= self.size:
            raise WorkloadError(f"fails at {trial.batch_size}")
        return super().measure(trial, effort)


def test_code_for_one_sample_alone_is_measured_with_it() -> None:
    result = search(FailsFrom(2), "fp32", Limits(memory_bytes=PLAIN.memory_bytes), lambda _: None)
    assert chosen(result) == result.max_batch_size == 1
    assert [m.status for m in result.measurements[:2]] == [OK, UNSUPPORTED]


@pytest.mark.parametrize(
    ("limits", "first"), [(Limits(), 2), (Limits(smallest_batch=2), 2), (Limits(largest_batch=1), 1)]
)
def test_code_that_fails_for_one_sample_too_fails(limits: Limits, first: int) -> None:
    with pytest.raises(WorkloadError, match=f"fails at {first}"):
        search(FailsFrom(1), "fp32", limits, lambda _: None)


def test_a_trial_that_the_budget_ends_did_not_fail() -> None:
    class Ending(SimulatedDevice):
        def measure(self, trial: Trial, effort: Effort) -> Measurement:
            if len(self.trials) < 3:
                return super().measure(trial, effort)
            return Measurement(
                precision=trial.precision, batch_size=trial.batch_size, status=UNSUPPORTED, detail=BUDGET_ENDED
            )

    result = search(Ending(PLAIN), "fp32", Limits(memory_bytes=PLAIN.memory_bytes), lambda _: None)
    assert result.cut_short
    assert {m.status for m in result.measurements} == {OK}


def test_a_bug_of_the_user_is_never_taken_for_too_large() -> None:
    with pytest.raises(WorkloadError, match="more than 1 value"):
        search(NeedsTwo(PLAIN), "fp32", Limits(largest_batch=1), lambda _: None)


@pytest.mark.parametrize("largest", [1, 2, 7, 100])
def test_no_batch_is_larger_than_the_data_set(largest: int) -> None:
    rising = replace(PLAIN, fixed_seconds=0.5)
    result, _ = run(rising, limits=Limits(memory_bytes=rising.memory_bytes, largest_batch=largest))
    assert max(sizes(result)) <= largest
    assert chosen(result) > largest / 2


def test_without_time_nothing_is_measured() -> None:
    result, _ = run(PLAIN, limits=Limits(deadline=0.0))
    assert (result.measurements, result.best, result.max_batch_size) == ((), None, None)


def test_one_measurement_is_enough_for_an_answer() -> None:
    result, _ = run(PLAIN, limits=Limits(memory_bytes=PLAIN.memory_bytes, deadline=0.1))
    assert sizes(result) == [chosen(result)] == [2]


def test_every_measurement_is_reported_as_soon_as_it_is_there() -> None:
    seen: list[Measurement] = []
    result = search(SimulatedDevice(PLAIN), "fp32", Limits(memory_bytes=PLAIN.memory_bytes), seen.append)
    assert tuple(seen) == result.measurements


def test_noise_everywhere_still_gets_an_answer() -> None:
    result, _ = run(PLAIN, noise=0.5)
    assert result.best is not None


@pytest.mark.parametrize(("effective", "batch"), [(100, 50), (96, 48), (80, 40), (97, 97)])
def test_the_batch_divides_the_effective_one(effective: int, batch: int) -> None:
    """A step costs as much as one sample; 97 is a prime number."""
    limits = Limits(memory_bytes=PLAIN.memory_bytes, largest_batch=effective, effective_batch=effective)
    result, device = run(replace(PLAIN, fixed_seconds=0.001), limits=limits)
    assert chosen(result) == batch
    assert max(m.batch_size for m in device.trials) <= effective


def test_a_smaller_batch_that_was_clearly_faster_is_chosen() -> None:
    """Three steps have an error of 10 %: one line through all of them smooths the difference away."""
    rates = {8192: 60_000.0, 32768: 89_000.0, 131072: 75_700.0}
    measured = tuple(
        Measurement(precision="fp32", batch_size=size, step_seconds=(size / rate,) * 3, samples_per_step=size)
        for size, rate in rates.items()
    )
    assert chosen(result_of("fp32", measured, Limits(largest_batch=131072))) == 32768


def test_a_single_step_ranks_nothing() -> None:
    once = Measurement(precision="fp32", batch_size=2, step_seconds=(1.0,), samples_per_step=2)
    assert result_of("fp32", (once,), Limits()).best is None
    assert result_of("fp32", (replace(once, step_seconds=(1.0, 1.1)),), Limits()).best is not None


def test_batch_sizes_closer_than_the_noise_are_equal_and_the_smaller_is_chosen() -> None:
    def timed(size: int, throughput: float, noise: float) -> Measurement:
        steps = tuple(size / throughput * (1 + noise * (n - 9.5) / 10) for n in range(20))
        return Measurement(precision="fp32", batch_size=size, step_seconds=steps, samples_per_step=size)

    for noise, size in ((0.002, 64), (0.1, 32)):
        measured = (timed(16, 500, noise), timed(32, 970, noise), timed(64, 1000, noise), timed(128, 1000, noise))
        assert chosen(result_of("fp32", measured, Limits(largest_batch=128))) == size


def test_a_single_sample_is_never_tried_before_two_failed() -> None:
    assert climb(Known((), Limits())) == 2
    assert climb(Known((), Limits(largest_batch=1))) == 1


def test_the_exhaustive_search_measures_every_power_of_two_and_the_largest_that_fits() -> None:
    result = exhaustive(SimulatedDevice(PLAIN, 0.0), "fp32", Limits(memory_bytes=PLAIN.memory_bytes), lambda _: None)
    *powers, last = sizes(result)
    assert powers == [2, 4, 8, 16, 32, 64, 128, 256, 512]
    assert last < 1024
    assert all(m.status == OK for m in result.measurements)
    assert PLAIN.held("fp32", last) > 0.9 * PLAIN.memory_bytes


def test_the_exhaustive_search_runs_out_of_memory_once_at_most() -> None:
    silent = replace(PLAIN, measures_memory=False)
    result = exhaustive(SimulatedDevice(silent), "fp32", Limits(deadline=0.0), lambda _: None)
    assert sizes(result)[-1] == 1024
    assert [m.status for m in result.measurements].count(OUT_OF_MEMORY) == 1


def test_the_exhaustive_search_tries_a_single_sample_if_two_do_not_fit() -> None:
    device = Stubborn(PLAIN, lambda size: OUT_OF_MEMORY if size > 1 else OK)
    result = exhaustive(device, "fp32", Limits(memory_bytes=PLAIN.memory_bytes), lambda _: None)
    assert (sizes(result), chosen(result)) == ([2, 1], 1)


def test_a_choice_that_was_throttled_is_measured_again() -> None:
    class Hot(SimulatedDevice):
        def measure(self, trial: Trial, effort: Effort) -> Measurement:
            measured = super().measure(trial, effort)
            again = sum(m.batch_size == trial.batch_size for m in self.trials) > 1
            reasons = () if again else ("hw_thermal_slowdown",)
            return replace(measured, conditions=Conditions(throttle_reasons=reasons))

    result = search(Hot(PLAIN, 0.0), "fp32", Limits(memory_bytes=PLAIN.memory_bytes), lambda _: None)
    assert [m.batch_size for m in result.measurements].count(chosen(result)) == 2
    assert result.best is not None
    taken = [m for m in result.measurements if m.batch_size == chosen(result)]
    assert result.best.step_seconds == taken[-1].step_seconds, "those of the throttled one do not count"


def test_a_trial_hangs_far_beyond_what_it_should_take() -> None:
    efforts: dict[int, Effort] = {}

    class Noting(SimulatedDevice):
        def measure(self, trial: Trial, effort: Effort) -> Measurement:
            efforts.setdefault(trial.batch_size, effort)
            return super().measure(trial, effort)

    limits = Limits(memory_bytes=PLAIN.memory_bytes, start_seconds=2.0)
    search(Noting(PLAIN, 0.0), "fp32", limits, lambda _: None)
    first, second, *_ = sorted(efforts)
    assert efforts[first].answer_seconds == math.inf, "nothing is known yet"
    step = PLAIN.seconds("fp32", first)
    assert efforts[second].answer_seconds == pytest.approx(3 * (2.0 + step + 3.0) + 20 * step * second / first)


def test_nothing_measured_has_no_knee() -> None:
    assert knee(Known((), Limits())) is None


def test_rungs() -> None:
    assert rungs(16) == [1, 2, 3, 4, 6, 8, 12, 16]
    assert [rungs(size)[-1] for size in (1, 2, 5, 100)] == [1, 2, 4, 96]


def known(seconds: dict[int, float | None], **limits: Any) -> Known:
    """Return what steps that take exactly so long tell, None for one that found no memory."""
    measured = [
        Measurement(
            precision="fp32",
            batch_size=size,
            status=OUT_OF_MEMORY if second is None else OK,
            step_seconds=() if second is None else (second,) * 4,
            samples_per_step=size,
        )
        for size, second in seconds.items()
    ]
    return Known(measured, Limits(**limits))


@pytest.fixture
def halves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let bounds be halves, so that figures can lie exactly on them."""
    for module, name in (
        *((policies, "WORTH_IT"), (policies, "UNCLEAR"), (policies, "MOST_TOLERANCE")),
        *((throughput, "WORTH_IT"), (throughput, "MOST_TOLERANCE")),
    ):
        monkeypatch.setattr(module, name, 0.5)


@pytest.mark.usefixtures("halves")
def test_a_gain_that_is_just_worth_it_is_tried() -> None:
    assert climb(known({2: 1.0, 4: None})) == 3
    assert climb(known({4: 1.0, 6: None})) is None, "5 gains a quarter"


@pytest.mark.usefixtures("halves")
def test_the_knee_is_as_fast_as_is_just_enough() -> None:
    """The fastest has two samples a second: one is half as fast."""
    assert knee(known({1: 1.0, 5: 2.5}, largest_batch=5)) == 1
    assert knee(known({1: 1.0, 5: 2.375}, largest_batch=5)) == 2


@pytest.mark.usefixtures("halves")
def test_what_just_misses_being_unclear_is_not_measured_again() -> None:
    assert confirm(known({1: 2.0, 5: 2.5}, largest_batch=5), unclear=0.5) is None
    assert confirm(known({1: 1.75, 5: 2.5}, largest_batch=5), unclear=0.5) == 1


def test_what_was_measured_least_often_is_confirmed_first() -> None:
    once = known({1: 1.0, 2: 1.97, 4: 3.94}).measurements
    assert confirm(Known(once, Limits()), unclear=0.1) == 1
    assert confirm(Known((*once, once[0]), Limits()), unclear=0.1) == 2
    assert confirm(Known((*once, *once), Limits()), unclear=0.1) is None
    assert confirm(Known((*once, *once), Limits()), most=3, unclear=0.1) == 1


@pytest.mark.usefixtures("halves")
def test_a_smaller_batch_replaces_the_knee_if_it_is_clearly_faster() -> None:
    """One line through three steps of an uncertain time, of which the first is out of place."""

    def found(second: float) -> int | None:
        points = known({1: second, 2: 1.0, 4: 1.0}, largest_batch=4)
        vars(points)["times"] = SimpleNamespace(points=points.times.points, sizes=[1, 2, 4], rate=float, tolerance=0.5)
        return policies.chosen(points)

    assert knee(known({1: 0.25, 2: 1.0, 4: 1.0}, largest_batch=4)) == 1
    assert (found(0.25), found(0.1875)) == (2, 1), "twice as fast, and faster"


@pytest.mark.parametrize("trials", [1, 3])
def test_a_policy_has_so_many_trials_and_no_more(trials: int) -> None:
    device = SimulatedDevice(PLAIN)
    result = search(device, "fp32", Limits(), lambda _: None, [(lambda _: 4, trials), (lambda _: 8, trials)])
    assert sizes(result) == [4] * trials + [8] * trials


@pytest.mark.parametrize(
    ("peaks", "largest"),
    [
        pytest.param({2: 100 * MIB}, None, id="one size, whose peak is what stays resident"),
        pytest.param({2: 102 * MIB}, None, id="one size"),
        pytest.param({2: 100 * MIB, 8: 100 * MIB}, None, id="two sizes of the same peak"),
        pytest.param({2: 102 * MIB, 8: 108 * MIB}, 64, id="two sizes with a slope: at most eight times what ran"),
        pytest.param({2: 102 * MIB, 128: 228 * MIB}, 890, id="as much as the memory holds"),
    ],
)
def test_the_largest_safe_batch_is_unknown_until_two_sizes_show_a_slope(
    peaks: dict[int, int], largest: int | None
) -> None:
    """On the CPU, one batch whose peak equals the resident memory once made 21,619,346,946 samples safe."""
    measured = tuple(
        Measurement(
            precision="fp32",
            batch_size=size,
            step_seconds=(1.0, 1.0),
            samples_per_step=size,
            peak_memory_bytes=peak,
            resident_memory_bytes=100 * MIB,
        )
        for size, peak in peaks.items()
    )
    result = result_of("fp32", measured, Limits(memory_bytes=1000 * MIB))
    assert result.max_batch_size == largest
    advice = recommend(None, [result], [])
    assert advice is not None
    assert advice.max_batch_size == largest


def test_a_batch_that_failed_bounds_the_safe_one_without_a_slope() -> None:
    ran = Measurement(
        precision="fp32", batch_size=2, step_seconds=(1.0,), peak_memory_bytes=MIB, resident_memory_bytes=MIB
    )
    failed = Measurement(precision="fp32", batch_size=4, status=OUT_OF_MEMORY)
    assert result_of("fp32", (ran, failed), Limits(memory_bytes=1000 * MIB)).max_batch_size == 2


def test_the_exhaustive_search_takes_the_largest_batch_if_that_is_a_power_of_two() -> None:
    """What the allocator holds leaves room for one sample more at most, but the estimate is of what is allocated."""
    ran = Measurement(
        precision="fp32",
        batch_size=2,
        step_seconds=(1.0, 1.0),
        samples_per_step=2,
        peak_memory_bytes=10,
        reserved_memory_bytes=90,
        resident_memory_bytes=0,
    )
    for largest, wanted in ((4, 4), (3, 3), (2, None), (None, 4)):
        assert policies._every_power(Known((ran,), Limits(memory_bytes=100, largest_batch=largest))) == wanted
