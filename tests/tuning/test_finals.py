"""Batch sizes measured in turns on a machine whose load changes."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from gpudoctor.model.tuning import OUT_OF_MEMORY, Measurement, Trial
from gpudoctor.tuning.executor import Effort
from gpudoctor.tuning.finals import choose_size, settle
from gpudoctor.tuning.known import Limits
from gpudoctor.tuning.search import SearchResult, result_of

STEADY = (1.0, 0.98, 1.02, 1.0)
NOISY = (0.5, 1.5, 0.7, 1.3)


class Loaded:
    """A machine on which a step of each size takes its time, times the load of the turn; a trial takes a second.

    hits: the only size that feels the load; 0 for all of them.
    """

    def __init__(
        self, seconds: dict[int, float], loads: tuple[float, ...] = (1.0,), fails: int = 0, hits: int = 0
    ) -> None:
        self.seconds, self.loads, self.fails, self.hits = seconds, loads, fails, hits
        self.clock = 0.0
        self.asked: list[int] = []

    def now(self) -> float:
        return self.clock

    def measure(self, trial: Trial, effort: Effort) -> Measurement:
        self.clock += 1.0
        turn = self.asked.count(trial.batch_size)
        self.asked.append(trial.batch_size)
        if trial.batch_size == self.fails:
            return Measurement(precision="fp32", batch_size=trial.batch_size, status=OUT_OF_MEMORY)
        load = self.loads[turn % len(self.loads)] if self.hits in (0, trial.batch_size) else 1.0
        return measured(trial.batch_size, self.seconds[trial.batch_size] * load, NOISY)


def measured(size: int, seconds: float, spread: tuple[float, ...] = STEADY) -> Measurement:
    steps = tuple(seconds * factor for factor in spread)
    return Measurement(precision="fp32", batch_size=size, step_seconds=steps, samples_per_step=size)


def searched(*measurements: Measurement, limits: Limits) -> SearchResult:
    return result_of("fp32", measurements, limits)


LIMITS = Limits(largest_batch=64, deadline=1000.0)
LINE = {8: 0.9, 16: 1.6, 32: 3.0, 64: 5.8}
"""Ever a little faster: 8.9, 10.0, 10.7 and 11.0 samples a second."""


def settled(machine: Loaded, *measurements: Measurement, limits: Limits = LIMITS) -> int | None:
    observed: list[Measurement] = []
    found = settle(machine, searched(*measurements, limits=limits), limits, observed.append)  # type: ignore[arg-type]
    assert [m.batch_size for m in observed] == machine.asked
    return None if found.best is None else found.best.batch_size


def test_a_quiet_machine_is_believed() -> None:
    machine = Loaded(LINE)
    quiet = [replace(measured(size, seconds), step_seconds=(seconds,) * 9) for size, seconds in LINE.items()]
    assert settled(machine, *quiet) == 64
    assert machine.asked == []
    assert settled(machine, *quiet, limits=replace(LIMITS, drifts=True)) in (32, 64)
    assert machine.asked.count(64) >= 3, "on a processor steady steps prove little"


def test_a_load_that_changes_hits_all_of_a_turn() -> None:
    """The search has seen 32 as much too slow; in each turn it is faster than 16."""
    machine = Loaded(LINE, loads=(1.0, 3.0, 1.5, 6.0))
    assert settled(machine, measured(8, 0.9, NOISY), measured(16, 1.6, NOISY), measured(32, 5.0, NOISY)) in (32, 64)


def test_the_largest_safe_batch_is_never_below_the_chosen_one() -> None:
    """A load that made 64 look as slow as if its memory had spilt over to the host ends what the search calls safe."""
    limits = replace(LIMITS, drifts=True)
    slow = [measured(16, 1.6), measured(32, 3.0), measured(64, 50.0)]
    found = settle(Loaded(LINE), searched(*slow, limits=limits), limits, lambda _: None)  # type: ignore[arg-type]
    assert found.best is not None
    assert found.max_batch_size is None or found.max_batch_size >= found.best.batch_size


def test_the_largest_wins_only_up_to_the_limit() -> None:
    limits = replace(LIMITS, largest_batch=32)
    machine = Loaded(LINE)
    assert settled(machine, measured(8, 0.9, NOISY), measured(16, 1.6, NOISY), limits=limits) == 32
    assert max(machine.asked) == 32


def test_without_time_the_search_decides() -> None:
    machine = Loaded(LINE)
    limits = replace(LIMITS, deadline=0.0)
    assert settled(machine, measured(8, 0.9, NOISY), measured(16, 1.6, NOISY), limits=limits) is not None
    assert machine.asked == []


def test_a_size_that_fails_in_a_turn_is_not_chosen() -> None:
    machine = Loaded(LINE, fails=64)
    assert settled(machine, measured(8, 0.9, NOISY), measured(16, 1.6, NOISY), measured(32, 3.0, NOISY)) in (8, 16, 32)


def test_nothing_that_ran_is_nothing_to_settle() -> None:
    machine = Loaded(LINE)
    assert settled(machine, replace(measured(8, 0.9), status=OUT_OF_MEMORY)) is None
    assert machine.asked == []


@pytest.mark.parametrize(
    ("ratios", "size"),
    [
        pytest.param({8: [1.0, 1.0, 1.0], 16: [1.01, 1.01, 1.01]}, 8, id="as fast: the smaller"),
        pytest.param({8: [1.0, 1.0, 1.0], 16: [1.02, 1.02, 1.02]}, 16, id="faster"),
        pytest.param({8: [1.0, 1.0, 1.0], 16: [0.95, 1.04, 1.3]}, 8, id="faster within the noise"),
        pytest.param({8: [1.0, 1.0, 1.0], 16: [0.9, 1.06, 1.3]}, 16, id="noise excuses five percent at most"),
        pytest.param({8: [1.0] * 4, 16: [1.5]}, 8, id="too few turns"),
        pytest.param({48: [1.0] * 3, 64: [1.01] * 3}, 64, id="as fast: the power of two"),
        pytest.param({48: [1.05] * 3, 64: [1.0] * 3}, 48, id="faster than the power of two"),
    ],
)
def test_the_smallest_of_the_fastest(ratios: dict[int, list[float]], size: int) -> None:
    assert choose_size(ratios) == size


def test_turns_go_on_until_noise_no_longer_decides() -> None:
    seconds = {8: 0.9, 16: 1.75, 32: 3.25}
    before = [measured(size, second, NOISY) for size, second in seconds.items()]
    steady, restless = Loaded(seconds), Loaded(seconds, loads=(1.3, 1.0, 0.8, *(1.0,) * 12), hits=32)
    limits = Limits(largest_batch=32, deadline=1000.0)
    assert settled(steady, *before, limits=limits) == settled(restless, *before, limits=limits) == 32
    assert steady.asked.count(32) == 3 < restless.asked.count(32)


def test_no_deadline_ends_after_some_turns() -> None:
    machine = Loaded({8: 1.0, 16: 2.0, 4: 0.5, 32: 4.0}, loads=(1.0, 2.0, 1.2))
    limits = Limits(largest_batch=32, deadline=math.inf)
    assert settled(machine, measured(8, 1.0, NOISY), measured(16, 2.0, NOISY), limits=limits) == 8
    assert len(machine.asked) <= 15 * 4
