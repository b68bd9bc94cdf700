"""The choice among precisions: noise, numerics, a second measurement of the closest two, and the reasons in words."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from gpudoctor.model.tuning import COMPLEX_PRECISIONS, OK, PRECISIONS, Measurement, Numerics, Recommendation
from gpudoctor.tuning.executor import BUDGET_ENDED, Executor
from gpudoctor.tuning.finals import settle
from gpudoctor.tuning.known import Limits
from gpudoctor.tuning.reasons import (
    CLOSE,
    ERRORS_APART,
    WORTH_IT,
    accumulation,
    baseline_of,
    confidence_of,
    further_reasons,
    near_best,
    runners_up,
    warnings_of,
    why_this_precision,
    why_this_size,
)
from gpudoctor.tuning.search import SearchResult, result_of
from gpudoctor.tuning.settings import together, trial_like
from gpudoctor.tuning.throughput import MOST_TOLERANCE, error_of, rate

SAFEST_FIRST = (*PRECISIONS, *COMPLEX_PRECISIONS)
"""fp16 after bf16: it overflows at 65504 and needs its gradients scaled."""

FEWEST_ROUNDS, MOST_ROUNDS = 2, 4
CLEAR = 0.005
"""The turns end when the gain is further than this from the one that decides."""

NO_LIMITS = Limits()

OfPrecision = TypeVar("OfPrecision", Measurement, SearchResult)
CLOSE_WHERE_RATES_DRIFT = 0.5
"""The same share as CLOSE on a processor: other work may have halved the rate while one precision was searched."""

Turns = Sequence[Sequence[Measurement]]


def recommend(
    executor: Executor | None,
    results: Sequence[SearchResult],
    numerics: Sequence[Numerics],
    limits: Limits = NO_LIMITS,
    observe: Callable[[Measurement], None] = lambda _: None,
) -> Recommendation | None:
    """Return what to run with; None if nothing ran that is numerically safe.

    executor: measures the two best again, in turns, if they are close; None to choose from what is measured.
    observe: is given of each of these measurements.
    """
    verdicts = {verdict.precision: verdict for verdict in numerics}
    searched = {result.precision: result for result in results}
    if executor is not None:
        ready = _allowed([result for result in results if result.best], verdicts)
        for fastest in sorted(ready, key=lambda result: result.throughput)[-1:]:
            settled = settle(executor, fastest, limits, observe)
            searched[settled.precision] = settled
            ready = [settled if result is fastest else result for result in ready]
        searched.update((again.precision, again) for again in _measured_again(executor, ready, limits, observe))
    ran = [result.best for result in searched.values() if result.best]
    allowed = _allowed(ran, verdicts)
    if not allowed:
        return None
    chosen = choose(allowed)
    others = [measurement for measurement in allowed if measurement is not chosen]
    result, verdict = searched[chosen.precision], verdicts.get(chosen.precision)
    baseline = baseline_of(chosen, searched.values())
    confidence, grounds = confidence_of(chosen, result, limits)
    return Recommendation(
        precision=chosen.precision,
        batch_size=chosen.batch_size,
        max_batch_size=result.max_batch_size,
        settings=chosen.settings,
        throughput=rate(chosen),
        unit=chosen.unit,
        why=(
            why_this_precision(chosen, baseline),
            why_this_size(chosen, result.measurements, limits),
            *further_reasons(chosen, others, verdict, limits),
            f"Confidence: {confidence}. {grounds}",
        ),
        near_best_batch_size=near_best(chosen, result.measurements),
        confidence=confidence,
        accumulation_steps=accumulation(chosen, limits),
        peak_memory_bytes=chosen.peak_memory_bytes,
        baseline=baseline,
        runners_up=tuple(runners_up(chosen, searched.values(), verdicts)),
        warnings=tuple(warnings_of(chosen, verdict)),
    )


def choose(measured: Sequence[Measurement]) -> Measurement:
    """Return the fastest, or a safer one that is as fast within the noise: so that two runs give the same answer."""
    fastest = max(measured, key=rate)
    return next(
        candidate
        for candidate in sorted(measured, key=lambda measurement: SAFEST_FIRST.index(measurement.precision))
        if rate(fastest) / rate(candidate) - 1 <= _tolerance(fastest, candidate)
    )


def _tolerance(fastest: Measurement, candidate: Measurement) -> float:
    """Return by which share a safer precision may be slower. It is limited, because a few slow steps show no noise."""
    return min(max(WORTH_IT, ERRORS_APART * error_of(fastest, candidate)), MOST_TOLERANCE)


def _allowed(found: Sequence[OfPrecision], verdicts: Mapping[str, Numerics]) -> list[OfPrecision]:
    """Return those whose numerics passed; those that were not compared only if none was."""
    passed = [each for each in found if each.precision in verdicts and verdicts[each.precision].passed]
    return passed or [each for each in found if each.precision not in verdicts]


def _measured_again(
    executor: Executor, results: Sequence[SearchResult], limits: Limits, observe: Callable[[Measurement], None]
) -> list[SearchResult]:
    """Return the two best, measured in turns, if they are close: drifting clocks then hit both.

    Where a batch size fails now, as when another process took memory, the best of each is chosen again.
    """
    pair = sorted(results, key=lambda result: result.throughput, reverse=True)[:2]
    close = CLOSE_WHERE_RATES_DRIFT if limits.drifts else CLOSE
    if len(pair) < 2 or pair[1].throughput < pair[0].throughput * (1 - close):
        return []
    turns: list[list[Measurement]] = []
    while executor.now() < limits.deadline and not _decided(turns):
        turn = [_again(executor, result.best, limits) for result in pair if result.best]
        if any(measurement.detail == BUDGET_ENDED for measurement in turn):  # it says nothing of a precision
            break
        turns.append(turn)
        for measurement in turn:
            observe(measurement)
    if not turns:
        return []
    taken = zip(*turns, strict=True)
    if _has_failed(turns):
        measured = [(*result.measurements, *more) for result, more in zip(pair, taken, strict=True)]
        return [result_of(result.precision, all_, limits) for result, all_ in zip(pair, measured, strict=True)]
    return [replace(result, best=together(more)) for result, more in zip(pair, taken, strict=False)]


def _has_failed(turns: Turns) -> bool:
    return any(measurement.status != OK for turn in turns for measurement in turn)


def _decided(turns: Turns) -> bool:
    failed = _has_failed(turns)
    if failed or len(turns) < FEWEST_ROUNDS:
        return failed
    first, second = (rate(together(taken)) for taken in zip(*turns, strict=True))
    return len(turns) >= MOST_ROUNDS or abs(abs(first / second - 1) - WORTH_IT) > CLEAR


def _again(executor: Executor, best: Measurement, limits: Limits) -> Measurement:
    trial = trial_like(best, best.settings)
    left = max(limits.deadline - executor.now(), 0.0)
    return executor.measure(trial, replace(limits.effort, limit_seconds=min(limits.effort.limit_seconds, left)))
