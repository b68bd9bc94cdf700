"""What the measurements of one precision show together, and what bounds its search."""

import math
from collections.abc import Iterable
from functools import cached_property

from gpudoctor.model.record import record
from gpudoctor.model.tuning import NUMERICS, OK, UNSUPPORTED, Measurement
from gpudoctor.tuning.executor import Effort
from gpudoctor.tuning.memory import MemoryModel, model_of
from gpudoctor.tuning.throughput import StepTimes, times_of

EFFORT = Effort(warmup_steps=2, steps=40, limit_seconds=3.0)

COLLAPSE = 2.0
"""A throughput this many times lower than that of a smaller batch: the memory has spilt over to the host."""

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

        It ends where memory spilt over to the host, or had to be freed to continue. Where rates drift, a rate that
        halves says nothing of memory: other work may have done it, or an allocator that asks the kernel at every step.
        """
        usable: list[Measurement] = []
        fastest = 0.0
        broken = {m.batch_size for m in self.measurements if m.throughput is None}
        ascending = sorted(self.measurements, key=lambda m: m.batch_size)
        for number, measurement in enumerate(ascending):
            throughput = measurement.throughput
            if throughput is None or measurement.batch_size in broken:
                continue
            collapsed = not self.limits.drifts and _has_collapsed(ascending[number:], fastest)
            if usable and (measurement.allocation_retries or collapsed):
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


def _has_collapsed(measured: Iterable[Measurement], fastest: float) -> bool:
    """Return whether the throughput stays far below that of smaller batches: a single slow trial is noise."""
    return all((measurement.throughput or 0.0) * COLLAPSE < fastest for measurement in measured)
