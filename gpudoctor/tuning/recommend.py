"""The choice among precisions: noise, numerics, a second measurement of the closest two, and the reasons in words."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from gpudoctor.data.numerics import percent
from gpudoctor.model.tuning import COMPLEX_PRECISIONS, OK, PRECISIONS, Measurement, Numerics, Recommendation, RunnerUp
from gpudoctor.tuning.executor import Executor
from gpudoctor.tuning.figures import FEW_STEPS, spoilt_by
from gpudoctor.tuning.gates import reference_name
from gpudoctor.tuning.search import Limits, SearchResult, result_of
from gpudoctor.tuning.settings import trial_like
from gpudoctor.tuning.throughput import relative_error
from gpudoctor.tuning.workers.precision import BASELINES

SAFEST_FIRST = (*PRECISIONS, *COMPLEX_PRECISIONS)
"""fp16 after bf16: it overflows at 65504 and needs its gradients scaled."""

CLOSE = 0.1
"""Share of the throughput within which the two best precisions are measured again, in turns: so much the clocks may
have fallen between the search of one and that of the other."""

WORTH_IT = 0.02
ERRORS_APART = 2.0
"""A less safe precision must gain the share, and this many standard errors of the comparison."""

FEWEST_ROUNDS, MOST_ROUNDS = 2, 4
CLEAR = 0.005
"""The turns end when the gain is further than this from the one that decides."""

NO_LIMITS = Limits()
GIB = 2**30

OfPrecision = TypeVar("OfPrecision", Measurement, SearchResult)
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
        searched.update((again.precision, again) for again in _measured_again(executor, ready, limits, observe))
    ran = [result.best for result in searched.values() if result.best]
    allowed = _allowed(ran, verdicts)
    if not allowed:
        return None
    chosen = choose(allowed)
    others = [measurement for measurement in allowed if measurement is not chosen]
    result, verdict, baseline = searched[chosen.precision], verdicts.get(chosen.precision), _baseline(chosen, ran)
    confidence, grounds = _confidence(chosen, result, limits)
    return Recommendation(
        precision=chosen.precision,
        batch_size=chosen.batch_size,
        max_batch_size=result.max_batch_size,
        settings=chosen.settings,
        throughput=_rate(chosen),
        unit=chosen.unit,
        why=(
            _why_this_precision(chosen, baseline),
            _why_this_size(chosen, result.measurements),
            *_further_reasons(chosen, others, verdict, limits),
            f"Confidence: {confidence}. {grounds}",
        ),
        confidence=confidence,
        accumulation_steps=_accumulation(chosen, limits),
        peak_memory_bytes=chosen.peak_memory_bytes,
        baseline=baseline,
        runners_up=tuple(_runners_up(chosen, searched.values(), verdicts)),
        warnings=tuple(_warnings(chosen, verdict)),
    )


def choose(measured: Sequence[Measurement]) -> Measurement:
    """Return the fastest, or a safer one that is as fast within the noise: so that two runs give the same answer."""
    fastest = max(measured, key=_rate)
    return next(
        candidate
        for candidate in sorted(measured, key=lambda measurement: SAFEST_FIRST.index(measurement.precision))
        if _rate(fastest) / _rate(candidate) - 1 <= max(WORTH_IT, ERRORS_APART * _error(fastest, candidate))
    )


def _rate(measurement: Measurement) -> float:
    return measurement.throughput or 0.0


def _error(*measurements: Measurement) -> float:
    """Return the standard error of the ratio of two throughputs, as a share."""
    return math.hypot(*(relative_error(measurement.step_seconds) for measurement in measurements))


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
    if len(pair) < 2 or pair[1].throughput < pair[0].throughput * (1 - CLOSE):
        return []
    turns: list[list[Measurement]] = []
    while executor.now() < limits.deadline and not _decided(turns):
        turns.append([_again(executor, result.best, limits) for result in pair if result.best])
        for measurement in turns[-1]:
            observe(measurement)
    taken = zip(*turns, strict=True)
    if _has_failed(turns):
        measured = [(*result.measurements, *more) for result, more in zip(pair, taken, strict=True)]
        return [result_of(result.precision, all_, limits) for result, all_ in zip(pair, measured, strict=True)]
    return [replace(result, best=_together(more)) for result, more in zip(pair, taken, strict=False)]


def _has_failed(turns: Turns) -> bool:
    return any(measurement.status != OK for turn in turns for measurement in turn)


def _decided(turns: Turns) -> bool:
    failed = _has_failed(turns)
    if failed or len(turns) < FEWEST_ROUNDS:
        return failed
    first, second = (_rate(_together(taken)) for taken in zip(*turns, strict=True))
    return len(turns) >= MOST_ROUNDS or abs(abs(first / second - 1) - WORTH_IT) > CLEAR


def _together(taken: Sequence[Measurement]) -> Measurement:
    """Return one measurement with the steps of all."""
    return replace(
        taken[-1], step_seconds=tuple(second for measurement in taken for second in measurement.step_seconds)
    )


def _again(executor: Executor, best: Measurement, limits: Limits) -> Measurement:
    trial = trial_like(best, best.settings)
    left = max(limits.deadline - executor.now(), 0.0)
    return executor.measure(trial, replace(limits.effort, limit_seconds=min(limits.effort.limit_seconds, left)))


def _baseline(chosen: Measurement, ran: Sequence[Measurement]) -> RunnerUp | None:
    """Return fp32, or complex128, at its best batch size."""
    for measurement in ran:
        if measurement.precision in BASELINES:
            slower = f"{_rate(chosen) / _rate(measurement):.2f} times slower"
            why = slower if measurement.precision != chosen.precision else "the recommendation itself"
            return _runner_up(measurement, why)
    return None


def _why_this_precision(chosen: Measurement, baseline: RunnerUp | None) -> str:
    digits = 0 if _rate(chosen) >= 100 else 2
    speed = f"{chosen.precision} at batch size {chosen.batch_size} runs {_rate(chosen):,.{digits}f} {chosen.unit}"
    if baseline is None or baseline.throughput is None or baseline.precision == chosen.precision:
        return f"{speed}."
    ratio = _rate(chosen) / baseline.throughput
    return f"{speed}, {ratio:.2f} times as fast as {baseline.precision} at its best batch size, {baseline.batch_size}."


def _why_this_size(chosen: Measurement, measured: Sequence[Measurement]) -> str:
    """Return why this batch size among those measured in this precision."""
    failed = {measurement.batch_size for measurement in measured if measurement.status != OK}
    ran = [measurement for measurement in measured if measurement.throughput]
    fastest = max(ran, key=_rate, default=chosen)
    if fastest.batch_size in failed:
        return f"Batch size {fastest.batch_size} was faster and failed when it was measured again."
    if len(ran) < 2:
        return f"Only batch size {chosen.batch_size} was measured."
    if fastest.batch_size == chosen.batch_size:
        return f"It is the fastest of the {len({m.batch_size for m in ran})} batch sizes measured."
    gain = _rate(fastest) / _rate(chosen) - 1
    return f"Batch size {fastest.batch_size} is {_not_worth(gain, fastest, chosen)} a larger batch."


def _accumulation(chosen: Measurement, limits: Limits) -> int | None:
    steps, rest = divmod(limits.effective_batch or 0, chosen.batch_size)
    return steps if steps and not rest else None


def _not_worth(gain: float, *pair: Measurement) -> str:
    noise = ERRORS_APART * _error(*pair)
    if gain <= noise:
        return f"{gain:.1%} faster, which is within the noise of {noise:.1%} and does not justify"
    return f"{gain:.1%} faster, which does not justify"


def _confidence(chosen: Measurement, result: SearchResult, limits: Limits) -> tuple[str, str]:
    """Return how sure the choice is, and why: from the spread of its steps, and from what it was compared with."""
    steps, error = len(chosen.step_seconds), ERRORS_APART * _error(chosen)
    known = f"{steps} timed steps give the throughput to within {error:.1%}"
    if steps < FEW_STEPS:
        return "low", "Only one step was timed." if steps == 1 else f"Only {steps} steps were timed."
    if limits.largest_batch != (limits.smallest_batch or 1) and len({m.batch_size for m in result.measurements}) < 2:
        return "low", f"No other batch size was measured; {known}."
    if result.cut_short or error > WORTH_IT:
        level = "low" if error > CLOSE else "medium"
        return level, f"The budget ended the search; {known}." if result.cut_short else f"{known}."
    return "high", f"{known}."


def _further_reasons(
    chosen: Measurement, others: Sequence[Measurement], verdict: Numerics | None, limits: Limits
) -> Iterator[str]:
    """Yield the reasons for the choice other than speed, in whole sentences with numbers."""
    fastest, effective = max((chosen, *others), key=_rate), limits.effective_batch
    steps = _accumulation(chosen, limits)
    if steps:
        every = "each batch" if steps == 1 else f"every {steps} batches"
        yield f"Step the optimiser after {every}: {steps} x {chosen.batch_size} = {effective} samples."
    elif effective:
        yield f"No measured batch size divides the effective batch of {effective}."
    if fastest is not chosen:
        gain = _rate(fastest) / _rate(chosen) - 1
        yield f"{fastest.precision} is {_not_worth(gain, fastest, chosen)} leaving the safer {chosen.precision}."
    if verdict is not None and verdict.relative_error is not None:
        error, reference = percent(verdict.relative_error), reference_name(verdict.reference)
        yield f"Numerical error against {reference}: {error} (acceptable)."
    peak = chosen.peak_memory_bytes
    if peak is not None and limits.memory_bytes:
        free = 1 - peak / limits.memory_bytes
        total = f"{limits.memory_bytes / GIB:.1f} GiB"
        yield f"Its peak memory is {peak / GIB:.2f} GiB of {total} available; {free:.0%} is free."


def _runners_up(
    chosen: Measurement, results: Iterable[SearchResult], verdicts: Mapping[str, Numerics]
) -> Iterator[RunnerUp]:
    """Yield every other precision, fastest first, and why it lost; then those that did not run."""
    for result in sorted(results, key=lambda result: -result.throughput):
        if result.best is not None and result.precision != chosen.precision:
            yield _runner_up(result.best, _why_not(result.best, chosen, verdicts.get(result.precision)))
        elif result.best is None and result.measurements:
            first = result.measurements[0]
            failed = next((m for m in result.measurements if m.status != OK), None)
            why = "too few of its steps were timed to rank it" if failed is None else failed.detail or failed.status
            yield RunnerUp(precision=result.precision, batch_size=first.batch_size, throughput=None, why=why)


def _runner_up(measurement: Measurement, why: str) -> RunnerUp:
    return RunnerUp(
        precision=measurement.precision, batch_size=measurement.batch_size, throughput=_rate(measurement), why=why
    )


def _why_not(measurement: Measurement, chosen: Measurement, verdict: Numerics | None) -> str:
    if verdict is None:
        return "its numerical error was not measured"
    if not verdict.passed:
        return f"numerical error: {verdict.reason or 'too large'}"
    gain = _rate(measurement) / _rate(chosen) - 1
    return f"{abs(gain):.1%} slower" if gain <= 0 else f"{_not_worth(gain, measurement, chosen)} a less safe precision"


def _warnings(chosen: Measurement, verdict: Numerics | None) -> Iterator[str]:
    """Yield what may have spoilt the measurement: when it was taken, and now that all of its steps are together."""
    yield from dict.fromkeys((*chosen.warnings, *spoilt_by(chosen)))
    if verdict is None:
        yield f"the numerical error of {chosen.precision} was not measured"
