"""The last word on the batch size: on a noisy device those in question are measured in turns and compared in pairs.

Between two trials of a search the load of the machine changes; between two of one turn it changes less. A ratio of
two rates of one turn is therefore steadier than the rates, and the median over the turns forgets a turn that was hit.

On a processor each turn has a worker of its own, smaller batches first, if there is time: what larger ones leave in the
memory allocator makes smaller ones faster than they are in a training (a character LSTM at batch 64: 2,400 samples a
second after larger ones, 1,800 in a process of its own; torch 2.13.0+cpu, glibc 2.36, 2026-11-24).
"""

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from gpudoctor.model.tuning import OK, Measurement, Trial
from gpudoctor.tuning.executor import BUDGET_ENDED, Executor
from gpudoctor.tuning.known import Known, Limits
from gpudoctor.tuning.search import SearchResult, result_of
from gpudoctor.tuning.settings import together
from gpudoctor.tuning.throughput import MOST_TOLERANCE, WORTH_IT, error_of, rate

QUIET = 0.01
"""Standard error of the chosen batch size's rate up to which the search is believed."""

CLOSE, FAR_BEHIND = 0.1, 0.2
"""Shares of the best rate: what is closer than the first takes part, what is further behind than the second leaves."""

MOST_SIZES = 4
FEWEST_TURNS, MOST_TURNS = 3, 15
TURNS_WORTH_IT = 2
"""Turns for which there must be time with a worker of their own; without it they share one."""

SHARE = 0.6
"""Of the time left, for the turns."""

SECONDS = 0.5
"""That one trial of a turn may take: short, so that what is compared is close in time."""

Ratios = Mapping[int, Sequence[float]]
"""Of the rate of each batch size to that of the searched one, turn by turn."""


def settle(
    executor: Executor, result: SearchResult, limits: Limits, observe: Callable[[Measurement], None]
) -> SearchResult:
    """Return the result with the batch size that the turns prefer; as it is if nothing varies much.

    observe: is given of each measurement as soon as it is there.
    """
    if result.best is None or (error_of(result.best) <= QUIET and not limits.drifts):
        return result
    known, reference = Known(result.measurements, limits), result.best.batch_size
    deadline = executor.now() + SHARE * (limits.deadline - executor.now())
    if known.limits.largest_batch is not None and known.limits.largest_batch == known.limits.smallest_batch:
        return result
    sizes, taken, ratios = _first(known, reference), list[Measurement](), dict[int, list[float]]()
    turn_seconds = limits.start_seconds + 2 * SECONDS * len(sizes)
    own_worker = limits.drifts and TURNS_WORTH_IT * turn_seconds <= deadline - executor.now()
    while executor.now() < deadline and not _is_settled(ratios, sizes):
        if own_worker:
            executor.close()
        turn = [_measure(executor, result, size, limits) for size in sizes]
        if any(measurement.detail == BUDGET_ENDED for measurement in turn):
            break
        for measurement in turn:
            observe(measurement)
        taken += turn
        if any(measurement.status != OK for measurement in turn):
            found = result_of(result.precision, (*result.measurements, *taken), limits)
            return replace(found, cut_short=result.cut_short)
        base = next(rate(m) for m in turn if m.batch_size == reference)
        for measurement in turn:
            ratios.setdefault(measurement.batch_size, []).append(rate(measurement) / base)
        sizes = _next(known, ratios, sizes, reference)
    return result if not taken else _with_turns(result, taken, choose_size(ratios), limits)


def choose_size(ratios: Ratios) -> int:
    """Return the smallest batch size that is as fast as the best within the noise of the turns, a power of two if any.

    So that two runs agree: between two powers of two a size must be faster than all of them.
    """
    most = max(len(found) for found in ratios.values())
    medians = {size: statistics.median(found) for size, found in ratios.items() if 2 * len(found) >= most}
    best = max(medians, key=medians.__getitem__)
    enough = medians[best] * (1 - min(max(WORTH_IT, _error(ratios[best])), MOST_TOLERANCE))
    fast = [size for size, median in medians.items() if median >= enough]
    return min([size for size in fast if size & (size - 1) == 0] or fast)


def _first(known: Known, reference: int) -> list[int]:
    """Return the chosen batch size, its neighbours, and what else was nearly as fast."""
    rates = {point.batch_size: point.rate for point in known.times.points}
    allowed = set(known.limits.sizes(known.reachable))
    if known.limits.drifts and not known.limits.effective_batch:  # rates jump between powers of two too
        allowed.update(rates)
    least = max(known.limits.smallest_batch or 1, known.times.sizes[0])
    around = (reference * 2, reference // 2, _power(reference * 2), _power(max(reference - 1, 1)))
    near = [size for size in around if size in allowed and size >= least]
    close = [size for size in rates if size in allowed and rates[size] >= max(rates.values()) * (1 - CLOSE)]
    fastest = sorted(close, key=rates.__getitem__, reverse=True)
    wanted = dict.fromkeys([reference, *fastest[:1], *near, *fastest])
    return sorted(size for size in [*wanted][:MOST_SIZES] if size not in known.failed)


def _next(known: Known, ratios: Ratios, sizes: Sequence[int], reference: int) -> list[int]:
    """Return who takes part in the next turn: not those far behind, and one more where the largest is the fastest."""
    medians = {size: statistics.median(ratios[size]) for size in sizes}
    best = max(medians, key=medians.__getitem__)
    stay = {size for size in sizes if medians[size] >= medians[best] * (1 - FAR_BEHIND)} | {reference}
    larger = _power(2 * best)
    if best == max(sizes) and larger in known.limits.sizes(known.reachable) and larger not in known.failed:
        stay.add(larger)
    return sorted(stay)


def _power(size: int) -> int:
    """Return the largest power of two up to a batch size: 32 for 48."""
    return 1 << (size.bit_length() - 1)


def _is_settled(ratios: Ratios, sizes: Sequence[int]) -> bool:
    """Return whether those who take part have had enough turns, and more of them would hardly choose another size."""
    if not ratios or min(len(ratios.get(size, ())) for size in sizes) < FEWEST_TURNS:
        return False
    best = max(sizes, key=lambda size: statistics.median(ratios[size]))
    others = (size for size in sizes if size != best)
    return len(ratios[best]) >= MOST_TURNS or not any(_is_in_question(ratios[size], ratios[best]) for size in others)


def _is_in_question(ratios: Sequence[float], best: Sequence[float]) -> bool:
    """Return whether noise decides if a size is as fast as the best, up to what a larger batch must gain."""
    behind = 1 - statistics.median(ratios) / statistics.median(best)
    return abs(behind - WORTH_IT) <= math.hypot(_error(ratios), _error(best))


def _error(found: Sequence[float]) -> float:
    """Return the standard error of the median of the ratios, as a share; of a single one nothing is known."""
    if len(found) < FEWEST_TURNS:
        return MOST_TOLERANCE
    return 1.25 * statistics.stdev(found) / math.sqrt(len(found)) / statistics.median(found)


def _measure(executor: Executor, result: SearchResult, size: int, limits: Limits) -> Measurement:
    left = max(limits.deadline - executor.now(), 0.0)
    effort = replace(limits.effort, limit_seconds=min(SECONDS, left), most_seconds=left)
    return executor.measure(Trial(precision=result.precision, batch_size=size), effort)


def _with_turns(result: SearchResult, taken: Sequence[Measurement], size: int, limits: Limits) -> SearchResult:
    """Return the result with what was measured in turns instead of what was measured of these sizes before."""
    turned = {m.batch_size for m in taken}
    merged = [together([m for m in taken if m.batch_size == one]) for one in sorted(turned)]
    kept = [m for m in result.measurements if m.batch_size not in turned]
    largest = result_of(result.precision, (*result.measurements, *taken), limits).max_batch_size
    rates = [rate(m) for m in taken if m.batch_size == size]
    return replace(
        result,
        unsteady=(max(rates) - min(rates)) / statistics.median(rates),
        best=next(m for m in merged if m.batch_size == size),
        measurements=(*kept, *merged),
        max_batch_size=None if largest is None else max(largest, size),
    )
