"""What a recommendation says: its reasons, its confidence, its warnings, and why the others lost."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from gpudoctor.data.numerics import percent
from gpudoctor.model.tuning import OK, Measurement, Numerics, RunnerUp
from gpudoctor.tuning.figures import FEW_STEPS, spoilt_by
from gpudoctor.tuning.gates import NO_FINITE_LOSS, reference_name
from gpudoctor.tuning.known import Limits
from gpudoctor.tuning.search import SearchResult
from gpudoctor.tuning.throughput import MOST_TOLERANCE, error_of, rate
from gpudoctor.tuning.workers.precision import BASELINES

CLOSE = 0.1
"""Share of the throughput within which the two best precisions are measured again, in turns: so much the clocks may
have fallen between the search of one and that of the other."""

WORTH_IT = 0.02
ERRORS_APART = 2.0
"""A less safe precision must gain the share, and this many standard errors of the comparison."""

UNSTEADY, VERY_UNSTEADY = 0.15, 0.5
"""Shares by which the throughput differs from turn to turn: with the first, high confidence would be wrong."""

NEAR_BEST = 0.05
"""A batch size that is slower by less may be the better one for training: smaller batches take more optimiser steps."""

GIB = 2**30


def baseline_of(chosen: Measurement, results: Iterable[SearchResult]) -> RunnerUp | None:
    """Return fp32, or complex128, at its best batch size; at that of `chosen` if the budget ended its search."""
    for result in results:
        if result.precision in BASELINES and result.best is not None:
            same = result.precision == chosen.precision
            measurement = result.best if same else comparable(result, chosen)
            if measurement is None:
                return None
            why = "the recommendation itself" if same else f"{rate(chosen) / rate(measurement):.2f} times slower"
            return _runner_up(measurement, why)
    return None


def comparable(result: SearchResult, chosen: Measurement) -> Measurement | None:
    """Return what `chosen` may be compared with: the best, or the same batch size if the budget ended the search."""
    if not result.cut_short:
        return result.best
    return next((m for m in result.measurements if m.throughput and m.batch_size == chosen.batch_size), None)


def why_this_precision(chosen: Measurement, baseline: RunnerUp | None) -> str:
    digits = 0 if rate(chosen) >= 100 else 2
    speed = f"{chosen.precision} at batch size {chosen.batch_size} runs {rate(chosen):,.{digits}f} {chosen.unit}"
    if baseline is None or baseline.throughput is None or baseline.precision == chosen.precision:
        return f"{speed}."
    ratio = rate(chosen) / baseline.throughput
    return f"{speed}, {ratio:.2f} times as fast as {baseline.precision} at its best batch size, {baseline.batch_size}."


def why_this_size(chosen: Measurement, measured: Sequence[Measurement], limits: Limits) -> str:
    """Return why this batch size among those measured in this precision."""
    failed = {measurement.batch_size for measurement in measured if measurement.status != OK}
    ran = [measurement for measurement in measured if measurement.throughput]
    fastest = max(ran, key=rate, default=chosen)
    if fastest.batch_size in failed:
        return f"Batch size {fastest.batch_size} was faster and failed when it was measured again."
    if len(ran) < 2:
        return f"Only batch size {chosen.batch_size} was measured."
    if fastest.batch_size == chosen.batch_size:
        return f"It is the fastest of the {len({m.batch_size for m in ran})} batch sizes measured."
    gain = rate(fastest) / rate(chosen) - 1
    faster = f"Batch size {fastest.batch_size} is {100 * gain:.1f} % faster"
    if fastest.allocation_retries:
        return f"{faster}, but the allocator had to empty its cache for it: memory is nearly full there."
    if (limits.effective_batch or 0) % fastest.batch_size:
        return f"{faster}, but it does not divide the effective batch."
    if gain > MOST_TOLERANCE and gain > ERRORS_APART * error_of(fastest, chosen):
        return f"{faster}, but the step times of all batch sizes together do not confirm it."
    other = "a larger batch" if fastest.batch_size > chosen.batch_size else "a size that is not a power of two"
    return f"Batch size {fastest.batch_size} is {_not_worth(gain, fastest, chosen)} {other}."


def near_best(chosen: Measurement, measured: Iterable[Measurement]) -> int:
    """Return the smallest batch size that reaches nearly the throughput of the chosen one."""
    fast = (m.batch_size for m in measured if rate(m) >= (1 - NEAR_BEST) * rate(chosen))
    return min((*fast, chosen.batch_size))


def accumulation(chosen: Measurement, limits: Limits) -> int | None:
    steps, rest = divmod(limits.effective_batch or 0, chosen.batch_size)
    return steps if steps and not rest else None


def _not_worth(gain: float, *pair: Measurement) -> str:
    noise = ERRORS_APART * error_of(*pair)
    if gain <= noise:
        return f"{100 * gain:.1f} % faster, which is within the noise of {100 * noise:.1f} % and does not justify"
    return f"{100 * gain:.1f} % faster, which does not justify"


def confidence_of(chosen: Measurement, result: SearchResult, limits: Limits) -> tuple[str, str]:
    """Return how sure the choice is, and why: from the spread of its steps, and from what it was compared with."""
    steps, error = len(chosen.step_seconds), ERRORS_APART * error_of(chosen)
    known = f"{steps} timed steps give the throughput to within {100 * error:.1f} %"
    if steps < FEW_STEPS:
        return "low", "Only one step was timed." if steps == 1 else f"Only {steps} steps were timed."
    if limits.largest_batch != (limits.smallest_batch or 1) and len({m.batch_size for m in result.measurements}) < 2:
        return "low", f"No other batch size was measured; {known}."
    if result.unsteady > UNSTEADY:
        level = "low" if result.cut_short or error > CLOSE or result.unsteady > VERY_UNSTEADY else "medium"
        return level, f"Its throughput differed by {100 * result.unsteady:.0f} % from one turn to another; {known}."
    if result.cut_short or error > WORTH_IT:
        level = "low" if error > CLOSE else "medium"
        return level, f"The budget ended the search; {known}." if result.cut_short else f"{known}."
    return "high", f"{known}."


def further_reasons(
    chosen: Measurement, others: Sequence[Measurement], verdict: Numerics | None, limits: Limits
) -> Iterator[str]:
    """Yield the reasons for the choice other than speed, in whole sentences with numbers."""
    fastest, effective = max((chosen, *others), key=rate), limits.effective_batch
    steps = accumulation(chosen, limits)
    if steps:
        every = "each batch" if steps == 1 else f"every {steps} batches"
        yield f"Step the optimiser after {every}: {steps} x {chosen.batch_size} = {effective} samples."
    elif effective:
        yield f"No measured batch size divides the effective batch of {effective}."
    if fastest is not chosen:
        gain = rate(fastest) / rate(chosen) - 1
        yield f"{fastest.precision} is {_not_worth(gain, fastest, chosen)} leaving the safer {chosen.precision}."
    if verdict is not None and verdict.relative_error is not None:
        error, reference = percent(verdict.relative_error), reference_name(verdict.reference)
        yield f"Numerical error against {reference}: {error} (acceptable)."
    if chosen.allocation_retries:
        yield "The allocator frees cached memory at each step of this batch size; the measured speed includes that."
        yield "If PYTORCH_ALLOC_CONF=expandable_segments:True is not set, try it: it may avoid that."
    peak = chosen.peak_memory_bytes
    if peak is not None and limits.memory_bytes:
        free = 1 - peak / limits.memory_bytes
        total = f"{limits.memory_bytes / GIB:.1f} GiB"
        yield f"Its peak memory is {peak / GIB:.2f} GiB of {total} available; {100 * free:.0f} % is free."


def runners_up(
    chosen: Measurement, results: Iterable[SearchResult], verdicts: Mapping[str, Numerics]
) -> Iterator[RunnerUp]:
    """Yield every other precision, fastest first, and why it lost; then those that did not run."""
    for result in sorted(results, key=lambda result: -result.throughput):
        if result.best is not None and result.precision != chosen.precision:
            other = comparable(result, chosen)
            verdict = verdicts.get(result.precision)
            why = _why_not(other, chosen, verdict) if other else _not_compared(result, verdict)
            yield _runner_up(other or result.best, why)
        elif result.best is None and result.measurements:
            first = result.measurements[0]
            failed = next((m for m in result.measurements if m.status != OK), None)
            why = "too few of its steps were timed to rank it" if failed is None else failed.detail or failed.status
            yield RunnerUp(precision=result.precision, batch_size=first.batch_size, throughput=None, why=why)


def _runner_up(measurement: Measurement, why: str) -> RunnerUp:
    return RunnerUp(
        precision=measurement.precision, batch_size=measurement.batch_size, throughput=rate(measurement), why=why
    )


def _why_not(measurement: Measurement, chosen: Measurement, verdict: Numerics | None) -> str:
    if verdict is None:
        return "its numerical error was not measured"
    if not verdict.passed:
        return f"numerical error: {verdict.reason or 'too large'}"
    gain = rate(measurement) / rate(chosen) - 1
    return (
        f"{100 * abs(gain):.1f} % slower"
        if gain <= 0
        else f"{_not_worth(gain, measurement, chosen)} a less safe precision"
    )


def _not_compared(result: SearchResult, verdict: Numerics | None) -> str:
    """Return why a precision is not compared: the budget ended before it ran at the recommended batch size."""
    if verdict is not None and not verdict.passed:
        return f"numerical error: {verdict.reason or 'too large'}"
    largest = max(m.batch_size for m in result.measurements)
    return f"not compared: the budget ended its search at batch size {largest:,}"


def warnings_of(chosen: Measurement, verdict: Numerics | None) -> Iterator[str]:
    """Yield what may have spoilt the measurement: when it was taken, and now that all of its steps are together."""
    yield from dict.fromkeys((*chosen.warnings, *spoilt_by(chosen)))
    if verdict is None:
        yield f"the numerical error of {chosen.precision} was not measured"
    elif NO_FINITE_LOSS in verdict.not_compared:
        yield "the loss is NaN or infinite in every precision, also in the reference: look at the training first"
