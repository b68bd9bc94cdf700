"""Peak memory against the batch size: bounds from what was measured, never a blind extrapolation."""

import math
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import replace

from gpudoctor.model.record import record
from gpudoctor.model.tuning import OK, Measurement

HEADROOM = 0.01
"""Share of the memory that stays free: for what the theory leaves out, as a workspace that cuDNN chooses by size."""

LINE_GROWTH, STRAIGHT_GROWTH = 1.5, 2.0
"""The line through two points, and through three, is believed up to this many times the last batch size.

It is exact once the curve does not bend any longer, and too low before: hence only a little way.
"""

SINGLE_POINT_SHARE = 0.95
"""While a single point uses less than this share of the memory, one more sample is tried."""

STRAIGHT = 0.01
"""Share of the last point's memory by which three points may miss one line."""


@record
class MemoryPoint:
    """The memory of one batch size, in bytes.

    peak: the highest allocated; held: the highest that the allocator held for it, never less than the peak.
    """

    batch_size: int
    peak: int
    held: int


class MemoryModel:
    """Bounds of the memory that a full step needs at any batch size.

    At each moment of a step the memory is affine in the batch B: a + b*B, where a is at least what stays resident
    between steps, r, and b is not negative; the peak m(B) is the largest of these lines, so it is convex.
    From a measured batch B on, each line grows at most as (a - r + b*B)*B'/B, so m(B') <= r + (m(B) - r)*B'/B;
    between two measured batches convexity puts m below their chord, beyond them above it.
    """

    def __init__(self, points: Iterable[MemoryPoint], resident: int) -> None:
        self.points = sorted(points, key=lambda point: point.batch_size)
        self.resident = resident

    def __bool__(self) -> bool:
        return bool(self.points)

    @property
    def shows_slope(self) -> bool:
        """Whether the memory grew between two batch sizes. On the CPU a small step may take less than was resident."""
        return bool(self.points) and self.points[-1].held > self.points[0].held

    def upper(self, batch_size: int) -> float:
        """Return the bytes that a batch of this size uses at most.

        What the allocator reserves beyond the allocated memory counts as growing with the batch. What earlier points
        were above the theory by (a temporary workspace) is added.
        """
        return _upper(self.points, self.resident, batch_size) + self._surprise()

    def estimate(self, batch_size: int) -> int:
        """Return the peak that is expected, in allocated bytes: it is on the line through the two nearest points.

        A single measured batch gives no slope: then the line through the resident memory, which is the upper bound.
        """
        sizes = [point.batch_size for point in self.points]
        after = min(max(bisect_left(sizes, batch_size), 1), len(sizes) - 1)
        if after == 0:
            only = self.points[0]
            return round(self.resident + (only.peak - self.resident) * batch_size / only.batch_size)
        low, high = self.points[after - 1], self.points[after]
        slope = (high.peak - low.peak) / (high.batch_size - low.batch_size)
        return max(round(high.peak + slope * (batch_size - high.batch_size)), self.resident)

    def largest_proved(self, limit_bytes: int) -> int:
        """Return the largest batch size whose upper bound leaves the headroom free; 0 if none does."""
        room = self._room(limit_bytes)
        fitting = [number for number, point in enumerate(self.points) if point.held <= room]
        if not fitting:
            return 0
        last, later = self.points[fitting[-1]], self.points[fitting[-1] + 1 :]
        slope = _slope(last, later[0]) if later else (last.held - self.resident) / last.batch_size
        return _reach(last, slope, room)

    def largest_likely(self, limit_bytes: int) -> int:
        """Return the largest batch size that may be tried, at least the largest proved.

        The line through the last two points is believed up to half as much again as the last batch size, and up to
        twice it if a third point is on the line. Then one more sample may use the headroom too, if it is a larger
        share of the batch than the headroom is of the memory. One point alone gives no slope: one more sample is tried
        while a twentieth of the memory is not allocated, because the allocator can free its cache.
        """
        proved = self.largest_proved(limit_bytes)
        last, room = self.points[-1], self._room(limit_bytes)
        if last.held > room:
            return proved
        if len(self.points) == 1:
            return max(proved, last.batch_size + (last.peak < SINGLE_POINT_SHARE * limit_bytes))
        slope, is_straight = _slope(self.points[-2], last), self._is_straight()
        along, growth = _reach(last, slope, room), STRAIGHT_GROWTH if is_straight else LINE_GROWTH
        is_small = is_straight and HEADROOM * last.batch_size < 1
        one_more = last.batch_size + (is_small and last.held + slope <= limit_bytes - self._surprise())
        return max(proved, one_more, min(along, math.floor(growth * last.batch_size)))

    def largest_tight(self, limit_bytes: int, freed: float) -> int:
        """Return the largest batch size for which the allocator has to free at most this share of its cache.

        By the line through the last two points, which is believed as far as for `largest_likely`.
        """
        last = self.points[-1]
        needs = [replace(point, held=round(point.held - freed * (point.held - point.peak))) for point in self.points]
        slope = _slope(*needs[-2:]) if len(needs) > 1 else (needs[-1].held - self.resident) / last.batch_size
        along = _reach(needs[-1], slope, limit_bytes - (1 - freed) * self._surprise())
        growth = STRAIGHT_GROWTH if self._is_straight() else LINE_GROWTH
        return min(along, math.floor(growth * last.batch_size))

    def _room(self, limit_bytes: int) -> float:
        return limit_bytes * (1 - HEADROOM) - self._surprise()

    def _is_straight(self) -> bool:
        """Return whether the line through the two points before it predicted the last one."""
        if len(self.points) < 3:
            return False
        first, second, last = self.points[-3:]
        predicted = second.held + _slope(first, second) * (last.batch_size - second.batch_size)
        return abs(predicted - last.held) <= STRAIGHT * last.held

    def _surprise(self) -> float:
        """Return by how many bytes the worst point exceeded the prediction of the smaller ones."""
        later = enumerate(self.points[1:], start=1)
        excesses = (point.held - _upper(self.points[:i], self.resident, point.batch_size) for i, point in later)
        return max((0.0, *excesses))


def model_of(measurements: Iterable[Measurement]) -> MemoryModel:
    """Return the model of what was measured; empty if the device reports no memory.

    Of a batch size that was measured twice the larger figures count.
    """
    ran = [m for m in measurements if m.status == OK and m.peak_memory_bytes is not None]
    points: dict[int, MemoryPoint] = {}
    for m in ran:
        known = points.get(m.batch_size, MemoryPoint(batch_size=m.batch_size, peak=0, held=0))
        peak = max(m.peak_memory_bytes or 0, known.peak)
        held = max(peak, m.reserved_memory_bytes or 0, known.held)
        points[m.batch_size] = MemoryPoint(batch_size=m.batch_size, peak=peak, held=held)
    return MemoryModel(points.values(), min((m.resident_memory_bytes or 0 for m in ran), default=0))


def _slope(low: MemoryPoint, high: MemoryPoint) -> float:
    return (high.held - low.held) / (high.batch_size - low.batch_size)


def _reach(point: MemoryPoint, slope: float, room: float) -> int:
    """Return the batch size at which a line through the point fills the room."""
    return point.batch_size + math.floor((room - point.held) / max(slope, 1.0))


def _upper(points: list[MemoryPoint], resident: int, batch_size: int) -> float:
    """Return the bound without the surprise; `points` are ascending, at least one."""
    sizes = [point.batch_size for point in points]
    after = bisect_left(sizes, batch_size)
    if after == len(sizes):
        last = points[-1]
        return resident + (last.held - resident) * batch_size / last.batch_size
    if after == 0 or sizes[after] == batch_size:
        return points[after].held
    low = points[after - 1]
    return low.held + _slope(low, points[after]) * (batch_size - low.batch_size)
