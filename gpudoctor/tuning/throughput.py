"""Step time against the batch size, between and next to what was measured."""

import math
import statistics
from bisect import bisect_left
from collections.abc import Iterable, Sequence

from gpudoctor.model.record import record
from gpudoctor.model.tuning import OK, Measurement
from gpudoctor.tuning.figures import quartiles

WORTH_IT, MOST_TOLERANCE = 0.015, 0.05
"""Share of the throughput that a larger batch must gain: less is the noise of a few dozen steps. At most so much."""

NOISES = 2.0 * math.sqrt(2.0)
"""Two standard errors of the difference of two medians."""

ERRORS_APART = 2.5
"""Points that are this many standard errors off a line are not on it."""


@record
class TimePoint:
    """The median step time of one batch size, and its standard error, both in seconds."""

    batch_size: int
    seconds: float
    error_seconds: float

    @property
    def rate(self) -> float:
        """Return how many times the batch's samples run in a second."""
        return self.batch_size / self.seconds


@record
class Line:
    """seconds = start + slope * batch size: what a step costs at all, and what each sample adds."""

    start: float
    slope: float

    def at(self, batch_size: int) -> float:
        """Return the seconds of a step of this batch size."""
        return self.start + self.slope * batch_size


class StepTimes:
    """Step time against the batch size.

    A step costs a fixed time and a time per sample (t = alpha + beta*B: Hockney; AdaptDL fits the same), so that the
    time, not the throughput, is near a line between two measured sizes. If one line fits the larger sizes within
    their noise, it replaces the piecewise one there: averaging over them is what makes two runs agree.
    """

    def __init__(self, points: Iterable[TimePoint]) -> None:
        self.points = sorted(points, key=lambda point: point.batch_size)
        self._tail, self._line = _longest_line(self.points)

    def __bool__(self) -> bool:
        return bool(self.points)

    @property
    def sizes(self) -> list[int]:
        """Return the batch sizes that were measured, in ascending order."""
        return [point.batch_size for point in self.points]

    def seconds(self, batch_size: int) -> float:
        """Return the time of a step; beyond the measured sizes the last line continues."""
        if batch_size >= self._tail:
            return self._line.at(batch_size)
        after = min(max(bisect_left(self.sizes, batch_size), 1), len(self.points) - 1)
        return _through(self.points[after - 1], self.points[after]).at(batch_size)

    def rate(self, batch_size: int) -> float:
        """Return the throughput, in batch sizes per second."""
        return batch_size / self.seconds(batch_size)

    def promised(self, batch_size: int) -> float | None:
        """Return the time of a step by the line through the two next smaller measured sizes; None without two."""
        smaller = [point for point in self.points if point.batch_size < batch_size][-2:]
        return _through(*smaller).at(batch_size) if len(smaller) > 1 else None

    @property
    def tolerance(self) -> float:
        """Return the share by which two throughputs count as equal: what is worth it, or the noise of the fastest."""
        fastest = max(self.points, key=lambda point: point.rate)
        return min(max(WORTH_IT, NOISES * fastest.error_seconds / fastest.seconds), MOST_TOLERANCE)


def times_of(measurements: Iterable[Measurement]) -> StepTimes:
    """Return the step times that were measured; a single step is not a measurement. Noise is in their errors.

    The steps of a batch size that was measured several times are taken together.
    """
    measured: dict[int, list[Measurement]] = {}
    for measurement in measurements:
        if measurement.status == OK and len(measurement.step_seconds) > 1:
            measured.setdefault(measurement.batch_size, []).append(measurement)
    steps = {
        size: [seconds for m in undisturbed(taken) for seconds in m.step_seconds] for size, taken in measured.items()
    }
    medians = {batch_size: statistics.median(seconds) for batch_size, seconds in steps.items()}
    return StepTimes(
        TimePoint(batch_size=size, seconds=median, error_seconds=median * relative_error(steps[size]))
        for size, median in medians.items()
    )


def undisturbed(measured: Iterable[Measurement]) -> list[Measurement]:
    """Return those that were not throttled; all if each of them was."""
    taken = list(measured)
    return [measurement for measurement in taken if not measurement.conditions.throttle_reasons] or taken


def relative_error(seconds: Sequence[float]) -> float:
    """Return the standard error of the median as a share of it; 0.1 for fewer than four values.

    The interquartile range of normal noise is 1.35 standard deviations, the median's error 1.25 times the mean's.
    """
    found = quartiles(seconds)
    if found is None:
        return 0.1
    low, median, high = found
    return (high - low) / median / 1.35 * 1.25 / math.sqrt(len(seconds))


def rate(measurement: Measurement) -> float:
    """Return the throughput; 0 if it did not run."""
    return measurement.throughput or 0.0


def error_of(*measurements: Measurement) -> float:
    """Return the standard error of the ratio of two throughputs, as a share."""
    return math.hypot(*(relative_error(measurement.step_seconds) for measurement in measurements))


def gain_per_doubling(low: TimePoint, high: TimePoint) -> float:
    """Return by which share the throughput grows each time the batch size doubles from one point to the other."""
    doublings = math.log2(high.batch_size / low.batch_size)
    return float((high.rate / low.rate) ** (1 / doublings)) - 1


def _through(low: TimePoint, high: TimePoint) -> Line:
    slope = max(high.seconds - low.seconds, 0.0) / (high.batch_size - low.batch_size)
    return Line(start=low.seconds - slope * low.batch_size, slope=slope)


def _longest_line(points: Sequence[TimePoint]) -> tuple[int, Line]:
    """Return the smallest batch size of the longest run of last points that one line fits, and that line."""
    if len(points) < 2:
        only = points[0] if points else TimePoint(batch_size=1, seconds=math.inf, error_seconds=0.0)
        return only.batch_size, Line(start=only.seconds, slope=0.0)
    longest = points[-2].batch_size, _through(points[-2], points[-1])
    for first in range(len(points) - 3, -1, -1):
        line = _fit(points[first:])
        if any(abs(line.at(p.batch_size) - p.seconds) > ERRORS_APART * p.error_seconds for p in points[first:]):
            break
        longest = points[first].batch_size, line
    return longest


def _fit(points: Sequence[TimePoint]) -> Line:
    """Return the line of least relative squares: noise grows with the time."""
    weights = [point.seconds**-2 for point in points]
    total = sum(weights)
    size = sum(w * p.batch_size for w, p in zip(weights, points, strict=True)) / total
    seconds = sum(w * p.seconds for w, p in zip(weights, points, strict=True)) / total
    across = sum(w * (p.batch_size - size) ** 2 for w, p in zip(weights, points, strict=True))
    along = sum(w * (p.batch_size - size) * (p.seconds - seconds) for w, p in zip(weights, points, strict=True))
    slope = max(along, 0.0) / across
    return Line(start=seconds - slope * size, slope=slope)
