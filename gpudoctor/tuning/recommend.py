"""The choice among precisions: noise, numerics, a second measurement of the closest two, and the reasons in words."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from gpudoctor.model.tuning import COMPLEX_PRECISIONS, PRECISIONS, Measurement, Numerics, Recommendation
from gpudoctor.tuning.executor import Executor
from gpudoctor.tuning.finals import settle
from gpudoctor.tuning.known import Limits
from gpudoctor.tuning.last_look import last_look
from gpudoctor.tuning.reasons import (
    CLOSE,
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
from gpudoctor.tuning.settings import together
from gpudoctor.tuning.throughput import rate
from gpudoctor.tuning.turns import has_failed, take_turns, tolerance

SAFEST_FIRST = (*PRECISIONS, *COMPLEX_PRECISIONS)
"""fp16 after bf16: it overflows at 65504 and needs its gradients scaled."""

NO_LIMITS = Limits()

OfPrecision = TypeVar("OfPrecision", Measurement, SearchResult)
CLOSE_WHERE_RATES_DRIFT = 0.5
"""The same share as CLOSE on a processor: other work may have halved the rate while one precision was searched."""


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
        searched.update(_finals(executor, results, verdicts, limits, observe))
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


def _finals(
    executor: Executor,
    results: Sequence[SearchResult],
    verdicts: Mapping[str, Numerics],
    limits: Limits,
    observe: Callable[[Measurement], None],
) -> dict[str, SearchResult]:
    """Return what more measurements say of the best: settled where rates vary, in turns if close, after a last look."""
    ready = _allowed([result for result in results if result.best], verdicts)
    if not ready:
        return {}
    fastest = max(ready, key=lambda result: result.throughput)
    settled = settle(executor, fastest, limits, observe)
    ready = [settled if result is fastest else result for result in ready]
    found = {result.precision: result for result in (settled, *_measured_again(executor, ready, limits, observe))}
    latest = {result.precision: result for result in (*ready, *found.values())}
    bests = [result.best for result in latest.values() if result.best]
    if not bests:
        return found
    chosen = latest[choose(bests).precision]
    return found | {chosen.precision: last_look(executor, chosen, limits, observe)}


def choose(measured: Sequence[Measurement]) -> Measurement:
    """Return the fastest, or a safer one that is as fast within the noise: so that two runs give the same answer."""
    fastest = max(measured, key=rate)
    return next(
        candidate
        for candidate in sorted(measured, key=lambda measurement: SAFEST_FIRST.index(measurement.precision))
        if rate(fastest) / rate(candidate) - 1 <= tolerance(fastest, candidate)
    )


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
    turns = take_turns(executor, [result.best for result in pair if result.best], limits, observe)
    if not turns:
        return []
    taken = zip(*turns, strict=True)
    if has_failed(turns):
        measured = [(*result.measurements, *more) for result, more in zip(pair, taken, strict=True)]
        return [result_of(result.precision, all_, limits) for result, all_ in zip(pair, measured, strict=True)]
    return [replace(result, best=together(more)) for result, more in zip(pair, taken, strict=False)]
