"""A last look around the chosen batch size: at a smaller one if a step takes too long, at a larger one that is tight.

smaller: devices compute in tiles. A batch just above a multiple of a tile takes longer than smaller batches promise.
tight: the allocator has to free cached memory at each step. One such batch is tried if it promises a gain. It is chosen
if it is faster in turns, the cost of freeing included. Trials may only use `--memory-fraction` of the free memory: the
rest is there for a longer sample or another process.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from gpudoctor.model.tuning import OK, Measurement
from gpudoctor.tuning.executor import Executor
from gpudoctor.tuning.finals import QUIET
from gpudoctor.tuning.known import Known, Limits
from gpudoctor.tuning.memory import HEADROOM
from gpudoctor.tuning.policies import MULTIPLE, MULTIPLE_FROM, confirm, rungs
from gpudoctor.tuning.reasons import WORTH_IT
from gpudoctor.tuning.search import SearchResult, result_of, search
from gpudoctor.tuning.settings import together
from gpudoctor.tuning.throughput import error_of, rate
from gpudoctor.tuning.turns import CLEAR, has_failed, take_turns, tolerance

SHARE = 0.5
"""Of the time left, for this look."""

UNCLEAR, TIMES, CONFIRMATIONS = 0.006, 6, 8
"""What misses or makes enough by less than this share is measured up to so many times, with so many trials in all."""

TOO_LONG = 0.03
"""Share by which a step takes longer than the line through the two next smaller batch sizes promises."""

FURTHEST, NEAREST = 0.6, 0.97
"""Shares of the chosen batch size between which the smaller one is."""

PROMISING = 0.03
"""Share of the throughput that a tight batch must promise to be tried: freeing memory costs some of it."""

FREED = 0.3
"""Share of its cache that the allocator may have to free for a tight batch: with more, too many run out of memory."""


def last_look(
    executor: Executor, result: SearchResult, limits: Limits, observe: Callable[[Measurement], None]
) -> SearchResult:
    """Return the result with a batch size that is clearly faster in turns; with the same one if there is none.

    observe: is given of each measurement as soon as it is there.
    """
    if result.best is None or result.cut_short or limits.drifts or limits.effective_batch:
        return result
    now = executor.now()
    limits = replace(limits, deadline=now + SHARE * (limits.deadline - now))
    result = _confirmed(executor, result, limits, observe)
    if result.best is None:
        return result
    policies = ((partial(smaller, result.best.batch_size), 1), (partial(tight, result.best.batch_size), 1))
    looked = search(executor, result.precision, limits, observe, policies, result.measurements).measurements
    new = looked[len(result.measurements) :]
    result = replace(result, measurements=looked)
    contenders = [m for m in looked if (m in new or m.allocation_retries) and _has_room(m, looked, limits)]
    fastest = max(contenders, key=rate, default=None)
    if fastest is None or rate(fastest) / result.throughput - 1 <= WORTH_IT - CLEAR:
        return result
    return _decided(executor, result, fastest, limits, observe)


def _confirmed(
    executor: Executor, result: SearchResult, limits: Limits, observe: Callable[[Measurement], None]
) -> SearchResult:
    """Return the result after measuring again what noise decides; as it is if rates vary: then turns have decided."""
    if result.best is None or error_of(result.best) > QUIET:
        return result
    policies = ((partial(confirm, most=TIMES, unclear=UNCLEAR), CONFIRMATIONS),)
    found = search(executor, result.precision, limits, observe, policies, result.measurements)
    if found.best is None or found.best.batch_size != result.best.batch_size:
        return replace(found, cut_short=False)  # the search itself was complete
    return replace(result, measurements=found.measurements)


def smaller(chosen: int, known: Known) -> int | None:
    """Return the next smaller 2^k or 1.5*2^k if a step of the chosen batch size takes too long; None if it does not."""
    promised, tried = known.times.promised(chosen), {m.batch_size for m in known.measurements}
    near = [size for size in rungs(chosen) if FURTHEST * chosen <= size <= NEAREST * chosen]
    if promised is None or chosen not in known.times.sizes or not near or near[-1] in tried:
        return None
    taken = next(point.seconds for point in known.times.points if point.batch_size == chosen)
    is_allowed = near[-1] >= (known.limits.smallest_batch or 1)
    return near[-1] if is_allowed and taken > (1 + TOO_LONG) * promised else None


def tight(chosen: int, known: Known) -> int | None:
    """Return the largest batch size that probably runs if the allocator frees memory; None if it promises no gain."""
    limit, memory = known.limits.memory_bytes, known.memory
    if limit is None or not memory.shows_slope or any(m.allocation_retries for m in known.measurements):
        return None
    predicted = memory.largest_tight(limit, FREED)
    if predicted >= min((size for size in known.failed if size > known.largest), default=math.inf):
        return None  # the prediction is wrong
    size = min(predicted, known.limits.largest_batch or predicted)
    size = size if size < MULTIPLE_FROM else size // MULTIPLE * MULTIPLE
    fastest = max((point.rate for point in known.times.points if point.batch_size <= chosen), default=0.0)
    return size if size > known.largest and known.times.rate(size) > (1 + PROMISING) * fastest else None


def _has_room(measured: Measurement, looked: tuple[Measurement, ...], limits: Limits) -> bool:
    """Return whether it never failed, left the headroom unallocated, and did not use the host's memory."""
    if any(m.batch_size == measured.batch_size and m.status != OK for m in looked):
        return False
    limit, peak, reserved = limits.memory_bytes, measured.peak_memory_bytes, measured.reserved_memory_bytes
    return limit is None or ((peak or 0) <= (1 - HEADROOM) * limit and (reserved or 0) <= limit)


def _decided(
    executor: Executor,
    result: SearchResult,
    contender: Measurement,
    limits: Limits,
    observe: Callable[[Measurement], None],
) -> SearchResult:
    """Return the result with the contender if it is faster in turns; chosen again if one of the two fails now."""
    best = result.best or contender
    turns = take_turns(executor, (best, contender), limits, observe)
    if not turns:
        return result
    if has_failed(turns):
        return result_of(result.precision, (*result.measurements, *(m for turn in turns for m in turn)), limits)
    before, after = (together(taken) for taken in zip(*turns, strict=True))
    if rate(after) / rate(before) - 1 <= tolerance(after, before):
        return result
    sizes, largest = (best.batch_size, contender.batch_size), result.max_batch_size
    others = (m for m in result.measurements if m.batch_size not in sizes)
    return replace(
        result,
        best=after,
        measurements=(*others, before, after),
        max_batch_size=None if largest is None else max(largest, contender.batch_size),
    )
