"""Where a search looks between its batch sizes: rates jump on a processor."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpudoctor.model.tuning import OK, UNSUPPORTED, Measurement, Trial
from gpudoctor.tuning.executor import BUDGET_ENDED, Effort
from gpudoctor.tuning.finals import settle
from gpudoctor.tuning.known import Known, Limits
from gpudoctor.tuning.scouting import MOST_TRIALS, SECONDS, gaps, scout
from gpudoctor.tuning.search import result_of, search

LSTM = {1: 446, 2: 784, 4: 1445, 8: 2705, 16: 4724, 32: 7908, 48: 9068, 64: 11288, 96: 15116, 128: 8029, 192: 8424,
        256: 8742, 384: 8827, 512: 9156}  # fmt: skip
"""Samples a second of an LSTM in bf16, on 2 cores: beyond batch 120 glibc asks the kernel at every step."""

LIMITS = Limits(largest_batch=512, deadline=1000.0, drifts=True)


class Replayed:
    """A processor on which each batch size has its rate; a trial takes a second."""

    def __init__(self, rates: dict[int, int]) -> None:
        self.rates, self.clock = rates, 0.0
        self.trials: list[tuple[int, float]] = []
        self.started = 0

    def now(self) -> float:
        return self.clock

    def close(self) -> None:
        self.started += 1

    def measure(self, trial: Trial, effort: Effort) -> Measurement:
        self.clock += 1.0
        self.trials.append((trial.batch_size, effort.limit_seconds))
        return measured(trial.batch_size, self.rate(trial.batch_size))

    def rate(self, size: int) -> float:
        below = max(one for one in self.rates if one <= size)
        return float(self.rates[below])


def measured(size: int, rate: float) -> Measurement:
    steps = tuple(size / rate * factor for factor in (1.0, 0.99, 1.01, 1.0))
    return Measurement(precision="bf16", batch_size=size, status=OK, step_seconds=steps, samples_per_step=size)


def searched(device: Replayed, limits: Limits) -> int:
    """Return what the search, the scout and the finals come to."""
    found = search(device, "bf16", limits, lambda _: None)  # type: ignore[arg-type]
    found = scout(device, found, limits, lambda _: None)  # type: ignore[arg-type]
    best = settle(device, found, limits, lambda _: None).best  # type: ignore[arg-type]
    assert best is not None
    return best.batch_size


def test_a_peak_between_two_powers_of_two_is_found() -> None:
    assert searched(Replayed(LSTM), LIMITS) == 96


def test_a_size_between_powers_of_two_meets_those_next_to_it() -> None:
    """The search was disturbed, and saw 24 alone as fast."""
    seen = result_of("bf16", (measured(16, 500), measured(24, 6200), measured(64, 900)), LIMITS)
    device = Replayed(LSTM)
    found = settle(device, seen, LIMITS, lambda _: None)  # type: ignore[arg-type]
    assert {16, 24, 32} <= {size for size, _ in device.trials}
    assert found.best is not None
    assert found.best.batch_size >= 64
    assert found.unsteady == 0.0


def test_a_turn_that_the_budget_ends_is_no_failure_of_a_size() -> None:
    class Ending(Replayed):
        def measure(self, trial: Trial, effort: Effort) -> Measurement:
            if len(self.trials) < 6:
                return super().measure(trial, effort)
            return Measurement(precision="bf16", batch_size=trial.batch_size, status=UNSUPPORTED, detail=BUDGET_ENDED)

    seen = result_of("bf16", tuple(measured(size, LSTM[size]) for size in (32, 64, 96, 128)), LIMITS)
    found = settle(Ending(LSTM), seen, LIMITS, lambda _: None)  # type: ignore[arg-type]
    assert found.best is not None
    assert found.best.batch_size == 96
    assert {m.status for m in found.measurements} == {OK}


def test_no_larger_batch_than_allowed_is_looked_at() -> None:
    device = Replayed(LSTM)
    assert searched(device, replace(LIMITS, largest_batch=80, smallest_batch=40)) in (40, 48, 64, 80)
    assert {size for size, _ in device.trials} <= set(range(40, 81))


def test_a_smooth_curve_keeps_a_power_of_two() -> None:
    smooth = {size: int(10_000 * size / (size + 8)) for size in range(1, 513)}
    assert searched(Replayed(smooth), LIMITS) in (256, 512)


def test_the_looks_are_brief_and_few() -> None:
    device = Replayed(LSTM)
    found = result_of("bf16", (measured(2, 784), measured(64, 11288), measured(512, 9156)), LIMITS)
    scout(device, found, LIMITS, lambda _: None)  # type: ignore[arg-type]
    assert {seconds for _, seconds in device.trials} == {SECONDS}
    assert 6 <= len(device.trials) <= MOST_TRIALS


@pytest.mark.parametrize(
    "limits", [replace(LIMITS, drifts=False), replace(LIMITS, effective_batch=256), replace(LIMITS, deadline=0.0)]
)
def test_where_there_is_nothing_to_look_for(limits: Limits) -> None:
    device = Replayed(LSTM)
    found = result_of("bf16", (measured(64, 11288), measured(512, 9156)), limits)
    assert scout(device, found, limits, lambda _: None).best == found.best  # type: ignore[arg-type]
    assert device.trials == []


def test_the_next_look() -> None:
    powers = tuple(measured(size, LSTM[size]) for size in (4, 8, 16, 32, 64, 128, 256))
    assert gaps(Known((), LIMITS)) is None
    assert gaps(Known((measured(64, 11288), measured(256, 8742)), LIMITS)) in (32, 128)
    assert gaps(Known(powers, LIMITS)) == 96
    assert gaps(Known((*powers, measured(96, 14000)), LIMITS)) == 48
    assert gaps(Known((*powers, measured(96, 15116)), LIMITS)) is None, "64 is too slow for a look next to it"


@pytest.mark.parametrize(("start_seconds", "own_worker"), [(1.0, True), (1000.0, False)])
def test_a_worker_for_each_turn_if_there_is_time(start_seconds: float, own_worker: bool) -> None:
    device = Replayed(LSTM)
    limits = replace(LIMITS, start_seconds=start_seconds)
    found = result_of("bf16", tuple(measured(size, LSTM[size]) for size in (32, 64, 96, 128)), limits)
    settle(device, found, limits, lambda _: None)  # type: ignore[arg-type]
    assert device.trials
    sizes = [size for size, _ in device.trials]
    turns = max(map(sizes.count, sizes))
    assert device.started == (turns if own_worker else 0)
    first = sizes[: sizes.index(96, sizes.index(96) + 1)]  # 96 takes part in every turn
    assert first == sorted(first), "larger batches leave something to smaller ones"
