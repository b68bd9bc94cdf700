"""A look between the batch sizes of a search, where rates jump: the fastest size may be one that the search leapt over.

On a processor the throughput is no smooth curve. glibc takes each block of more than 32 MiB from the kernel again and
gives it back (M_MMAP_THRESHOLD of mallopt(3)): an LSTM of 50 steps in bf16 trains 16,600 samples a second at batch 96,
8,300 at batch 128, and 16,600 again there with MALLOC_MMAP_THRESHOLD_ and MALLOC_TRIM_THRESHOLD_ raised
(torch 2.13.0+cpu, 2026-11-24).
"""

from collections.abc import Callable
from dataclasses import replace

from gpudoctor.model.tuning import Measurement
from gpudoctor.tuning.executor import Executor
from gpudoctor.tuning.known import Known, Limits
from gpudoctor.tuning.policies import rungs
from gpudoctor.tuning.search import SearchResult, search
from gpudoctor.tuning.throughput import WORTH_IT

SECONDS = 0.4
"""That one trial may take: what looks fast is measured again."""

MOST_TRIALS = 10
PROMISING = 0.25
"""Share of the best rate: next to what is slower by less, a faster size may hide."""

BELOW, ABOVE = 16, 4
"""How far from the fastest batch size it looks, as factors."""


def scout(
    executor: Executor, result: SearchResult, limits: Limits, observe: Callable[[Measurement], None]
) -> SearchResult:
    """Return the result of a search after a look at what it leapt over; as it is where rates do not drift.

    observe: is given of each measurement as soon as it is there.
    """
    if not limits.drifts or limits.effective_batch or result.best is None or result.cut_short:
        return result
    seconds = min(SECONDS, limits.effort.limit_seconds)
    brief = replace(limits, effort=replace(limits.effort, limit_seconds=seconds))
    policies = ((gaps, MOST_TRIALS),)
    found = search(executor, result.precision, brief, observe, policies, result.measurements)
    return replace(found, cut_short=False)  # the search itself was complete


def gaps(known: Known) -> int | None:
    """Return the next batch size to look at: a power of two near the fastest, then 1.5*2^k next to fast ones."""
    rates = {point.batch_size: point.rate for point in known.times.points}
    if not rates:
        return None
    best = max(rates.values())
    fastest = min(size for size in rates if rates[size] >= (1 - WORTH_IT) * best)  # noise must not lead ever higher
    least = max(known.limits.smallest_batch or 1, known.times.sizes[0])
    ladder = [size for size in rungs(min(known.reachable, ABOVE * fastest)) if size >= max(least, fastest / BELOW)]
    tried = {m.batch_size for m in known.measurements}
    powers = [size for size in ladder if size & (size - 1) == 0]
    fast = sorted((size for size in rates if rates[size] >= (1 - PROMISING) * best), key=rates.__getitem__)
    neighbours = [near for size in reversed(fast) for near in _neighbours(ladder, size)]
    nearest = sorted(powers, key=lambda size: max(size / fastest, fastest / size))
    return next((size for size in (*nearest, *neighbours) if size not in tried), None)


def _neighbours(ladder: list[int], size: int) -> list[int]:
    """Return the next larger and the next smaller of the ladder."""
    larger, smaller = [rung for rung in ladder if rung > size], [rung for rung in ladder if rung < size]
    return [*larger[:1], *smaller[-1:]]
