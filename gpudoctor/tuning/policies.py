"""Which batch size to measure next: policies say it from what is known so far, and None if there is no more to learn.

climb: ever larger batches, each only as far as the measured memory lets it fit, until a larger one promises nothing;
refine: the smallest batch that the measured step times promise to be as fast as the best one;
confirm: once more, what the choice hangs on;
cool: once more the choice, if the device was throttled;
hold: once more the choice itself, if a trial failed since.
"""

import math
from collections.abc import Callable

from gpudoctor.model.tuning import OK, OUT_OF_MEMORY
from gpudoctor.tuning.known import Known
from gpudoctor.tuning.throughput import MOST_TOLERANCE, WORTH_IT, gain_per_doubling

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
        return between[len(between) // 2] if between else _below_edge(known)
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


def _below_edge(known: Known) -> int | None:
    """Return a batch size halfway to the smallest one that is too large; None if that one ended in an error.

    If it only had to free memory, or used host memory too, smaller batch sizes run without an error.
    """
    edge = min(size for size in known.failed if size > known.largest)
    if any(m.status != OK for m in known.measurements if m.batch_size == edge):
        return None
    middle = (known.largest + known.reachable + 1) // 2
    size = middle if middle < MULTIPLE_FROM else middle // MULTIPLE * MULTIPLE
    return size if size > known.largest else None


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


def confirm(known: Known, most: int = 2, unclear: float = UNCLEAR) -> int | None:
    """Return a batch size to measure again because it almost misses, or almost makes, what is enough; None for none.

    most: how often each may be measured. unclear: the share of the throughput that is almost.
    """
    times = known.times
    if not times:
        return None
    close = [size for size in times.sizes if abs(times.rate(size) / known.enough - 1) < unclear]
    deciding = [*close, max(times.sizes, key=times.rate)] if close else []
    measured = [m.batch_size for m in known.measurements]
    return min((size for size in deciding if measured.count(size) < most), key=measured.count, default=None)


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
