"""Two measurements taken again in turns, so that drifting clocks change both."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from gpudoctor.model.tuning import OK, Measurement
from gpudoctor.tuning.executor import BUDGET_ENDED, Executor
from gpudoctor.tuning.known import Limits
from gpudoctor.tuning.reasons import ERRORS_APART, WORTH_IT
from gpudoctor.tuning.settings import together, trial_like
from gpudoctor.tuning.throughput import MOST_TOLERANCE, error_of, rate

FEWEST_ROUNDS, MOST_ROUNDS = 2, 6
CLEAR = 0.005
"""The turns end when the gain is further than this from the one that decides."""

Turns = Sequence[Sequence[Measurement]]


def take_turns(
    executor: Executor, pair: Sequence[Measurement], limits: Limits, observe: Callable[[Measurement], None]
) -> Turns:
    """Return what was measured turn by turn, until it is clear which one is faster; nothing if there is no time."""
    turns: list[list[Measurement]] = []
    while executor.now() < limits.deadline and not _decided(turns):
        turn = [_again(executor, measured, limits) for measured in pair]
        if any(measurement.detail == BUDGET_ENDED for measurement in turn):  # it says nothing of either
            break
        turns.append(turn)
        for measurement in turn:
            observe(measurement)
    return turns


def has_failed(turns: Turns) -> bool:
    """Return whether one of the two did not run."""
    return any(measurement.status != OK for turn in turns for measurement in turn)


def tolerance(fastest: Measurement, candidate: Measurement) -> float:
    """Return by which share a safer choice may be slower. It is limited, because a few slow steps show no noise."""
    return min(max(WORTH_IT, ERRORS_APART * error_of(fastest, candidate)), MOST_TOLERANCE)


def _decided(turns: Turns) -> bool:
    failed = has_failed(turns)
    if failed or len(turns) < FEWEST_ROUNDS:
        return failed
    first, second = (rate(together(taken)) for taken in zip(*turns, strict=True))
    return len(turns) >= MOST_ROUNDS or abs(abs(first / second - 1) - WORTH_IT) > CLEAR


def _again(executor: Executor, best: Measurement, limits: Limits) -> Measurement:
    trial = trial_like(best, best.settings)
    left = max(limits.deadline - executor.now(), 0.0)
    return executor.measure(trial, replace(limits.effort, limit_seconds=min(limits.effort.limit_seconds, left)))
