"""What the measurements of one precision tell together, for the policies of the search to ask."""

import math
from collections.abc import Iterable
from functools import cached_property

from gpudoctor.model.record import record
from gpudoctor.model.tuning import NUMERICS, OK, UNSUPPORTED, Measurement
from gpudoctor.tuning.executor import Effort
from gpudoctor.tuning.memory import MemoryModel, model_of
from gpudoctor.tuning.throughput import StepTimes, times_of

EFFORT = Effort(warmup_steps=2, steps=40, limit_seconds=3.0)

WORTH_IT = 0.015
"""Share of the throughput that a larger batch must gain: less is the noise of a few dozen steps."""

COLLAPSE = 2.0
"""A throughput this many times lower than that of a smaller batch: the memory has spilt over to the host."""

FAR = 64
"""Where nothing bounds the batch, so many times the largest that ran stands for the end."""


@record
class Limits:
    """What bounds a search.

    memory_bytes: that trials may use; None where it is not known.
    largest_batch: samples of the data set; None where it is not known.
    deadline: of executor.now(); no trial starts after it.
    effort: how long one trial may take.
    """

    memory_bytes: int | None = None
    largest_batch: int | None = None
    deadline: float = math.inf
    effort: Effort = EFFORT


class Known:
    """What the measurements of one precision tell together."""

    def __init__(self, measurements: Iterable[Measurement], limits: Limits) -> None:
        self.measurements = tuple(measurements)
        self.limits = limits

    @cached_property
    def usable(self) -> tuple[Measurement, ...]:
        """Return what ran as it should, each time that it was measured, smallest batch first.

        It ends where memory spilt over to the host, or had to be freed to go on.
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
        """Tell whether the precision itself is out: its numbers are not finite, or nothing of it is supported."""
        statuses = [m.status for m in self.measurements]
        return NUMERICS in statuses or (UNSUPPORTED in statuses and OK not in statuses)

    @property
    def largest(self) -> int:
        """Return the largest batch size that ran; 0 where none did."""
        return self.usable[-1].batch_size if self.usable else 0

    @property
    def tells_memory(self) -> bool:
        """Tell whether memory is measured, and what there is of it known."""
        return bool(self.memory) and self.limits.memory_bytes is not None

    @cached_property
    def safe(self) -> int | None:
        """Return the largest batch size that ran or is proved to fit; None if nothing failed and nothing is proved.

        A failure of what was proved to fit makes the proof void: another process may have taken memory since.
        """
        if not self.tells_memory or not self.memory.shows_slope:
            return self.largest if self.failed else None
        proved = self.memory.largest_proved(self.limits.memory_bytes or 0)
        return max(self.largest, 0 if min(self.failed, default=proved + 1) <= proved else proved)

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
        return best * (1 - WORTH_IT)

    def gain(self, size: int) -> float:
        """Return what a batch size promises to gain over the largest that ran, as a share."""
        if len(self.times.points) < 2:
            return size / self.largest - 1
        return self.times.rate(size) / self.times.rate(self.largest) - 1
