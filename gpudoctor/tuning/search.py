"""The search of one precision: which batch sizes to measure, and which of them is the best.

Policies say what to measure next from what is known so far, and None when there is no more to learn:
climb: ever larger batches, each only as far as the measured memory lets it fit, until a larger one promises nothing;
refine: the smallest batch that the measured step times promise to be as fast as the best one;
confirm: once more, what the choice hangs on;
cool: once more the choice, if the device was throttled;
hold: once more the choice itself, if a trial failed since.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cached_property

from gpudoctor.errors import WorkloadError
from gpudoctor.model.record import record
from gpudoctor.model.tuning import NUMERICS, OK, OUT_OF_MEMORY, UNSUPPORTED, Measurement, Trial
from gpudoctor.tuning.executor import Effort, Executor
from gpudoctor.tuning.memory import MemoryModel, model_of
from gpudoctor.tuning.throughput import MOST_TOLERANCE, WORTH_IT, StepTimes, gain_per_doubling, times_of, undisturbed

EFFORT = Effort(warmup_steps=2, steps=40, limit_seconds=3.0)

COLLAPSE = 2.0
"""A throughput this many times lower than that of a smaller batch: the memory has spilt over to the host."""

HANGS, HANGS_STEPS = 3.0, 20
"""A trial hangs after this many times what it should take, plus the longest time that so many steps could take."""

MOST_TIMES_MEASURED = 8
"""The largest batch size called safe is at most this many times the largest that ran: further a line is a guess."""

FAR = 64
"""If nothing limits the batch, this many times the largest batch that ran is the limit."""


@record
class Limits:
    """What bounds a search.

    memory_bytes: that trials may use; None if it is not known.
    largest_batch: that the user or the data set allows; None if there is no limit.
    smallest_batch: that the user allows; None for any.
    effective_batch: samples between two steps of the optimiser: the batch recommended divides them; None for any.
    deadline: of executor.now(); no trial starts after it.
    start_seconds: that a worker takes until it can measure.
    effort: how long one trial may take.
    drifts: rates change between two trials more than within one, as on a processor with other work.
    """

    memory_bytes: int | None = None
    largest_batch: int | None = None
    smallest_batch: int | None = None
    effective_batch: int | None = None
    deadline: float = math.inf
    start_seconds: float = math.inf
    effort: Effort = EFFORT
    drifts: bool = False

    def sizes(self, largest: int) -> list[int]:
        """Return the batch sizes to choose from up to `largest`: what divides the effective batch, or powers of two."""
        if self.effective_batch is None:
            return [1 << exponent for exponent in range(largest.bit_length())]
        return [size for size in range(1, min(largest, self.effective_batch) + 1) if self.effective_batch % size == 0]


class Known:
    """What the measurements of one precision show together."""

    def __init__(self, measurements: Iterable[Measurement], limits: Limits) -> None:
        self.measurements = tuple(measurements)
        self.limits = limits

    @cached_property
    def usable(self) -> tuple[Measurement, ...]:
        """Return what ran as it should, each time that it was measured, smallest batch first.

        It ends where memory spilt over to the host, or had to be freed to continue.
        """
        usable: list[Measurement] = []
        fastest = 0.0
        broken = {m.batch_size for m in self.measurements if m.throughput is None}
        for measurement in sorted(self.measurements, key=lambda m: m.batch_size):
            throughput = measurement.throughput
            if throughput is None or measurement.batch_size in broken:
                continue
            if usable and (measurement.allocation_retries or throughput * COLLAPSE < fastest):
                break
            usable.append(measurement)
            fastest = max(fastest, throughput)
        return tuple(usable)

    @cached_property
    def failed(self) -> tuple[int, ...]:
        """Return the batch sizes that did not run as they should."""
        return tuple(dict.fromkeys(m.batch_size for m in self.measurements if m not in self.usable))

    @cached_property
    def memory(self) -> MemoryModel:
        return model_of(self.usable)

    @cached_property
    def times(self) -> StepTimes:
        return times_of(self.usable)

    @property
    def refused(self) -> bool:
        """Return whether the precision itself is out: its numbers are not finite, or nothing of it is supported."""
        statuses = [m.status for m in self.measurements]
        return NUMERICS in statuses or (UNSUPPORTED in statuses and OK not in statuses)

    @property
    def largest(self) -> int:
        """Return the largest batch size that ran; 0 if none did."""
        return self.usable[-1].batch_size if self.usable else 0

    @property
    def measures_memory(self) -> bool:
        """Return whether memory is measured and its limit is known."""
        return bool(self.memory) and self.limits.memory_bytes is not None

    @cached_property
    def safe(self) -> int | None:
        """Return the largest batch size that ran or is proved to fit; None if nothing failed and nothing is proved.

        A failure of what was proved to fit makes the proof void: another process may have taken memory since.
        """
        if not self.measures_memory or not self.memory.shows_slope:
            return self.largest if self.failed else None
        proved = self.memory.largest_proved(self.limits.memory_bytes or 0)
        proved = min(proved, MOST_TIMES_MEASURED * self.largest, self.limits.largest_batch or proved)
        is_void = min(self.failed, default=math.inf) <= proved
        return self.largest if is_void else max(self.largest, proved)

    @cached_property
    def reachable(self) -> int:
        """Return the largest batch size that may be tried, at least the largest that ran."""
        bounds = [FAR * self.largest, *(size - 1 for size in self.failed if size > self.largest)]
        if self.limits.largest_batch is not None:
            bounds.append(self.limits.largest_batch)
        if self.memory and self.limits.memory_bytes is not None:
            bounds.append(self.memory.largest_likely(self.limits.memory_bytes))
        return max(min(bounds), self.largest)

    @property
    def enough(self) -> float:
        """Return the throughput that is as good as the best, measured or promised, in batch sizes per second."""
        best = max(self.times.rate(size) for size in (*self.times.sizes, self.reachable))
        return best * (1 - self.times.tolerance)

    def gain(self, size: int) -> float:
        """Return what a batch size promises to gain over the largest that ran, as a share."""
        if len(self.times.points) < 2:
            return size / self.largest - 1
        return self.times.rate(size) / self.times.rate(self.largest) - 1


SMALLEST = 2
"""Where the climb starts: batch normalisation cannot train on a single sample."""

STEP, LEAP, DOUBLING = 4, 16, 2
"""How the batch grows: as a rule; while the throughput grows almost as the batch; if the device reports no memory."""

LEAP_GAIN = 0.8
"""What a doubling must gain for the leap."""

UNCLEAR = 0.004
"""A batch size that misses or makes what is enough by less than this share of the throughput is measured again."""

MULTIPLE, MULTIPLE_FROM = 8, 256
"""Batch sizes from the second on are multiples of the first, as tensor cores want; smaller ones lose too much by it."""

FAILURES, CORRECTIONS, CONFIRMATIONS = 4, 3, 3
"""After so many batch sizes that failed the climb ends; how many trials the other policies may have."""


@record
class SearchResult:
    """What one precision came to.

    best: the smallest power of two as fast as the best throughput within 1.5 %, or the noise, or what was fastest; its
        steps are those of all measurements of that batch size. None if nothing ran or could be ranked.
    max_batch_size: the largest that is safe in memory, by proof if it is larger than any that ran; None if unknown.
    cut_short: the deadline came before the search was done.
    """

    precision: str
    measurements: tuple[Measurement, ...]
    best: Measurement | None
    max_batch_size: int | None
    cut_short: bool = False

    @property
    def throughput(self) -> float:
        """Return the samples per second of the best; 0 if there is none."""
        return (self.best.throughput if self.best else None) or 0.0


def climb(known: Known) -> int | None:
    """Return the next batch size upwards; None if a larger one promises no gain, or does not fit."""
    if not known.measurements:
        smallest = known.limits.smallest_batch or SMALLEST
        return min(smallest, known.limits.largest_batch or smallest)
    if known.refused or len(known.failed) >= FAILURES:
        return None
    if not known.usable:
        smaller = min(known.failed) // 2
        return smaller if smaller >= (known.limits.smallest_batch or 1) else None
    if known.gain(known.reachable) < WORTH_IT:
        return None
    if any(size > known.largest for size in known.failed):
        beyond = _beyond(known)
        if beyond is not None:
            return beyond
        between = [rung for rung in rungs(known.reachable) if rung > known.largest]
        return between[len(between) // 2] if between else None
    points, growth = known.times.points, STEP if known.measures_memory else DOUBLING
    if growth == STEP and len(points) > 1 and gain_per_doubling(points[-2], points[-1]) > LEAP_GAIN:
        growth = LEAP
    return known.largest * growth if known.largest * growth < known.reachable else _top(known)


def _beyond(known: Known) -> int | None:
    """Return twice the one batch size that ran out of memory though it is proved to fit; None if there is none.

    A library may want a large workspace for this size alone: https://github.com/deeplearning4j/deeplearning4j/issues/5461
    """
    limit, status = known.limits.memory_bytes, known.measurements[-1].status
    if limit is None or not known.memory or len(known.failed) != 1 or status != OUT_OF_MEMORY:
        return None
    wanted = 2 * known.failed[0]
    largest = known.limits.largest_batch or wanted
    return wanted if wanted <= min(known.memory.largest_proved(limit), largest) else None


def _top(known: Known) -> int | None:
    """Return the largest batch size to try, a rung if that is as good; None if it promises no gain."""
    rung = rungs(known.reachable)[-1]
    top = known.reachable if known.reachable < MULTIPLE_FROM else known.reachable // MULTIPLE * MULTIPLE
    size = top if known.gain(top) - known.gain(rung) > WORTH_IT else rung
    return size if size > known.largest and known.gain(size) > WORTH_IT else None


def refine(known: Known) -> int | None:
    """Return the batch size that promises to be the best; None if it is measured."""
    size = knee(known)
    return size if size not in {m.batch_size for m in known.measurements} else None


def confirm(known: Known) -> int | None:
    """Return a batch size to measure again because it almost misses, or almost makes, what is enough; None for none."""
    times = known.times
    if not times:
        return None
    close = [size for size in times.sizes if abs(times.rate(size) / known.enough - 1) < UNCLEAR]
    deciding = [*close, max(times.sizes, key=times.rate)] if close else []
    measured = [m.batch_size for m in known.measurements]
    return next((size for size in deciding if measured.count(size) == 1), None)


def cool(known: Known) -> int | None:
    """Return the chosen batch size if it was only measured on a throttled device; None if all is well."""
    size = chosen(known)
    taken = [m for m in known.usable if m.batch_size == size]
    return size if len(taken) == 1 and taken[0].conditions.throttle_reasons else None


def hold(known: Known) -> int | None:
    """Return the chosen batch size if another one failed since it ran: a process that took memory fails it too.

    If it fails now, the one that is chosen instead; None if all is well.
    """
    failures = [number for number, m in enumerate(known.measurements) if m.status != OK]
    size = refine(known) or chosen(known)
    if size is None or not failures or known.refused:
        return None
    return size if size not in {m.batch_size for m in known.measurements[failures[-1] :]} else None


def chosen(known: Known) -> int | None:
    """Return the knee, or the fastest batch size if it was not measured or failed; None if nothing ran.

    The line that smooths the times must not prefer the knee to a smaller batch that was clearly faster.
    """
    size, rates = knee(known), {point.batch_size: point.rate for point in known.times.points}
    if known.limits.effective_batch and size is not None:
        divisors = set(known.limits.sizes(max(rates))).intersection(rates)
        rates = {one: rates[one] for one in divisors} or rates
    if size is None or size not in rates:
        return max(rates, key=rates.__getitem__, default=None)
    least = rates[size] / (1 - MOST_TOLERANCE)
    return max((one for one in rates if one < size and rates[one] > least), key=rates.__getitem__, default=size)


def knee(known: Known) -> int | None:
    """Return the smallest size to choose from that is fast enough, else the fastest; None if nothing ran.

    With rungs at 1.5*2^k as well, two runs would differ more often, for a batch that is a third smaller at most.
    """
    times = known.times
    if not times:
        return None
    fastest = max(times.sizes, key=times.rate)
    largest = known.reachable if known.limits.effective_batch else fastest
    enough, sizes = known.enough, [size for size in known.limits.sizes(largest) if size >= times.sizes[0]]
    otherwise = sizes[-1] if sizes and known.limits.effective_batch else fastest
    return next((size for size in sizes if times.rate(size) >= enough), otherwise)


def rungs(highest: int) -> list[int]:
    """Return the batch sizes 2^k and 1.5*2^k up to `highest`."""
    powers = [1 << exponent for exponent in range(highest.bit_length())]
    return sorted(rung for power in powers for rung in {power, power + power // 2} if rung <= highest)


def _every_power(known: Known) -> int | None:
    """Return the next power of two, then the largest batch that fits; None if memory ran out, or will."""
    if not known.usable:
        return climb(known)
    if known.refused or known.failed:
        return None
    limit, largest, wanted = known.limits.memory_bytes, known.limits.largest_batch, known.largest * 2
    too_many = largest is not None and wanted > largest
    too_large = known.memory and limit is not None and known.memory.estimate(wanted) > limit
    if too_many or too_large:  # the largest that may be tried, which the data set bounds too
        return known.reachable if known.reachable > known.largest else None
    return wanted


Policy = Callable[[Known], int | None]

SEARCH: tuple[tuple[Policy, float], ...] = (
    (climb, math.inf),
    (refine, CORRECTIONS),
    (confirm, CONFIRMATIONS),
    (refine, CORRECTIONS),
    (cool, CONFIRMATIONS),
    (hold, FAILURES),
)
EXHAUSTIVE: tuple[tuple[Policy, float], ...] = ((_every_power, math.inf),)
"""The policies in turn, and how many trials each may have."""


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
            observe(measurement)
            answered[size] = measurement.batch_size
            known = Known((*known.measurements, measurement), limits)
    return replace(result_of(precision, known.measurements, limits), cut_short=cut_short)


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


def _measure(executor: Executor, precision: str, size: int, known: Known) -> Measurement | None:
    """Measure one batch size; what is predicted of its memory goes with it.

    If the user's code fails though a smaller batch ran, the failure is the result of this batch size. None if it fails
    on a single sample, tried because two did not fit: batch normalisation does.
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
        if size <= known.largest or not known.usable:
            raise
        return Measurement(
            precision=precision, batch_size=size, status=UNSUPPORTED, detail=str(error), traceback=error.traceback
        )
