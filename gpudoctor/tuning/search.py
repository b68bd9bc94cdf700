"""The search of one precision: it measures what the policies ask for, and says which batch size is the best."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from gpudoctor.errors import WorkloadError
from gpudoctor.model.record import record
from gpudoctor.model.tuning import OK, OUT_OF_MEMORY, UNSUPPORTED, Measurement, Trial
from gpudoctor.tuning.executor import BUDGET_ENDED, Effort, Executor
from gpudoctor.tuning.known import Known, Limits
from gpudoctor.tuning.policies import EXHAUSTIVE, SEARCH, Policy, chosen
from gpudoctor.tuning.throughput import undisturbed

HANGS, HANGS_STEPS = 3.0, 20
"""A trial hangs after this many times what it should take, plus the longest time that so many steps could take."""


SAME_MEMORY = {"fp32": "tf32", "tf32": "fp32", "bf16": "fp16", "fp16": "bf16"}
"""Precisions whose tensors have the same sizes: a batch that runs out of memory in one does in the other."""


@record
class SearchResult:
    """What one precision came to.

    best: the smallest power of two as fast as the best throughput within 1.5 %, or the noise, or what was fastest; its
        steps are those of all measurements of that batch size. None if nothing ran or could be ranked.
    max_batch_size: the largest that is safe in memory, by proof if it is larger than any that ran; None if unknown.
    cut_short: the deadline came before the search was done.
    unsteady: by which share the rate of the best differed from turn to turn of the finals; 0 without any.
    """

    precision: str
    measurements: tuple[Measurement, ...]
    best: Measurement | None
    max_batch_size: int | None
    cut_short: bool = False
    unsteady: float = 0.0

    @property
    def throughput(self) -> float:
        """Return the samples per second of the best; 0 if there is none."""
        return (self.best.throughput if self.best else None) or 0.0


def search(
    executor: Executor,
    precision: str,
    limits: Limits,
    observe: Callable[[Measurement], None],
    policies: Iterable[tuple[Policy, float]] = SEARCH,
    before: tuple[Measurement, ...] = (),
) -> SearchResult:
    """Return the best batch size of a precision, and everything that was measured on the way.

    observe: is given of each measurement as soon as it is there.
    policies: say what to measure, one after another. A recording answers with the nearest size that it has: what it
        answered so once is not asked again.
    before: what an earlier search measured before its deadline.
    """
    known = Known(before, limits)
    answered: dict[int, int] = {}
    cut_short = False
    for policy, trials in policies:
        end = len(known.measurements) + trials
        while len(known.measurements) < end:
            size = policy(known)
            if size is None or answered.get(size, size) != size:
                break
            if executor.now() >= limits.deadline:
                cut_short = True
                break
            measurement = _measure(executor, precision, size, known)
            if measurement is None:
                break
            if measurement.detail == BUDGET_ENDED:
                cut_short = True
                break
            observe(measurement)
            answered[size] = measurement.batch_size
            known = Known((*known.measurements, measurement), limits)
    return replace(result_of(precision, known.measurements, limits), cut_short=cut_short)


def without_failures(limits: Limits, precision: str, results: Mapping[str, SearchResult]) -> Limits:
    """Return the limits of a search that tries nothing larger than what ran in the precision of the same memory.

    As they are if that one has not run out of memory, or has not been searched.
    """
    same = results.get(SAME_MEMORY.get(precision, ""))
    measured = same.measurements if same else ()
    failed = min((m.batch_size for m in measured if m.status == OUT_OF_MEMORY), default=None)
    ran = [m.batch_size for m in measured if failed and m.status == OK and m.batch_size < failed]
    return replace(limits, largest_batch=min(max(ran), limits.largest_batch or max(ran))) if ran else limits


def exhaustive(
    executor: Executor,
    precision: str,
    limits: Limits,
    observe: Callable[[Measurement], None],
    before: tuple[Measurement, ...] = (),
) -> SearchResult:
    """Return the same after measuring every power of two that fits, and the largest batch that does.

    Memory runs out once at most, if the estimate does not foresee it; the deadline does not count.
    """
    return search(executor, precision, replace(limits, deadline=math.inf), observe, EXHAUSTIVE, before)


def result_of(precision: str, measurements: tuple[Measurement, ...], limits: Limits) -> SearchResult:
    """Return what the measurements of one precision come to, also if the search could not end."""
    known = Known(measurements, limits)
    size, best = None if known.refused else chosen(known), None
    if size is not None:
        measured = undisturbed(m for m in known.usable if m.batch_size == size)
        best = replace(measured[-1], step_seconds=tuple(second for m in measured for second in m.step_seconds))
    return SearchResult(precision=precision, measurements=known.measurements, best=best, max_batch_size=known.safe)


def _answer_seconds(known: Known, size: int) -> float:
    """Return after how many seconds a trial hangs, from how long smaller ones took: so that one spares the budget."""
    if not known.usable:
        return math.inf
    first = max((m.warmup_seconds[0] for m in known.usable if m.warmup_seconds), default=0.0)  # it may compile
    step = max((m.step_median_seconds or 0.0) * max(size / m.batch_size, 1.0) for m in known.usable)
    return HANGS * (known.limits.start_seconds + first + known.limits.effort.limit_seconds) + HANGS_STEPS * step


def _alone(executor: Executor, trial: Trial, limits: Effort, error: WorkloadError) -> Measurement:
    """Return how a single sample does, where the first batch of more failed.

    Raises:
        WorkloadError: that fails too, and `error` says what failed first.
    """
    try:
        return executor.measure(replace(trial, batch_size=1, predicted_memory_bytes=None), limits)
    except WorkloadError:
        raise error from None


def _measure(executor: Executor, precision: str, size: int, known: Known) -> Measurement | None:
    """Measure one batch size; what is predicted of its memory goes with it.

    If the user's code fails though a smaller batch ran, as a single sample did, that is the result of this batch size.
    None if it fails on a single sample, tried because two did not fit: batch normalisation does.
    """
    predicted = known.memory.estimate(size) if known.memory else None
    effort, left = known.limits.effort, known.limits.deadline - executor.now()
    trial = Trial(precision=precision, batch_size=size, predicted_memory_bytes=predicted)
    limits = replace(
        effort,
        limit_seconds=min(effort.limit_seconds, left),
        most_seconds=left,
        answer_seconds=_answer_seconds(known, size),
    )
    try:
        return executor.measure(trial, limits)
    except WorkloadError as error:
        if size == 1 and known.failed:
            return None
        if size > (known.limits.smallest_batch or 1) and not known.measurements:
            return _alone(executor, trial, limits, error)
        if size <= known.largest or not known.usable:
            raise
        return Measurement(
            precision=precision, batch_size=size, status=UNSUPPORTED, detail=str(error), traceback=error.traceback
        )
