"""Step times between measured batch sizes."""

import math
from dataclasses import replace

import pytest

from gpudoctor.model.tuning import OUT_OF_MEMORY, Conditions, Measurement
from gpudoctor.tuning import throughput
from gpudoctor.tuning.throughput import StepTimes, TimePoint, gain_per_doubling, relative_error, times_of


def point(batch_size: int, seconds: float, error: float = 0.002) -> TimePoint:
    return TimePoint(batch_size=batch_size, seconds=seconds, error_seconds=seconds * error)


def affine(batch_size: int) -> TimePoint:
    return point(batch_size, 0.010 + 0.001 * batch_size)


def measurement(batch_size: int, *seconds: float) -> Measurement:
    return Measurement(precision="fp32", batch_size=batch_size, step_seconds=seconds, samples_per_step=batch_size)


def test_time_not_throughput_is_interpolated() -> None:
    times = StepTimes([affine(4), affine(64)])
    assert times.seconds(16) == pytest.approx(0.026)
    assert times.rate(16) == pytest.approx(16 / 0.026)


def test_beyond_the_last_point_the_line_goes_on() -> None:
    assert StepTimes([affine(4), affine(64)]).seconds(256) == pytest.approx(0.266)


def test_one_line_through_noisy_points_averages_over_them() -> None:
    noisy = StepTimes([affine(16), point(64, 0.074 * 1.002), point(256, 0.266 * 0.998)])
    assert noisy.rate(64) == pytest.approx(64 / 0.074, rel=0.002)
    assert noisy.seconds(64) != pytest.approx(0.074 * 1.002, rel=1e-6)


def test_a_flat_start_is_not_on_the_line() -> None:
    launches = [point(1, 0.020), point(4, 0.020), affine(64), affine(256), affine(1024)]
    times = StepTimes(launches)
    assert times.seconds(4) == pytest.approx(0.020)
    assert times.seconds(128) == pytest.approx(0.138)


def test_a_step_never_gets_shorter_with_the_batch() -> None:
    assert StepTimes([point(4, 0.021), point(8, 0.020)]).seconds(4096) > 0


def test_a_single_point_shows_its_own_time() -> None:
    assert StepTimes([affine(4)]).seconds(4) == pytest.approx(0.014)
    assert not StepTimes([])


def test_gain_per_doubling() -> None:
    assert gain_per_doubling(point(4, 1.0), point(16, 1.0)) == pytest.approx(1.0)
    assert gain_per_doubling(point(4, 1.0), point(16, 4.0)) == pytest.approx(0.0)


def test_steps_of_the_same_batch_size_are_taken_together() -> None:
    times = times_of([measurement(8, 1.0, 1.0, 1.0), measurement(8, 3.0, 3.0, 3.0, 3.0, 3.0)])
    assert [p.seconds for p in times.points] == [3.0]


def test_a_throttled_measurement_counts_only_if_there_is_no_other() -> None:
    hot = replace(measurement(8, 3.0, 3.0), conditions=Conditions(throttle_reasons=("hw_thermal_slowdown",)))
    assert [p.seconds for p in times_of([hot]).points] == [3.0]
    assert [p.seconds for p in times_of([hot, measurement(8, 1.0, 1.0)]).points] == [1.0]


def test_noise_is_an_error_and_failures_have_no_time() -> None:
    wild = measurement(8, 1.0, 2.0, 3.0, 4.0, 5.0)
    failed = Measurement(precision="fp32", batch_size=16, status=OUT_OF_MEMORY)
    steady, noisy = times_of([wild, failed, measurement(4, 1.0, 1.0, 1.0, 1.0)]).points
    assert (steady.batch_size, noisy.batch_size) == (4, 8)
    assert steady.error_seconds < noisy.error_seconds


def test_the_error_of_a_median_falls_with_the_root_of_the_steps() -> None:
    few, many = (1.0, 1.1, 0.9, 1.05), (1.0, 1.1, 0.9, 1.05) * 16
    assert relative_error(many) == pytest.approx(relative_error(few) / 4, rel=0.2)
    assert relative_error((1.0,)) == pytest.approx(0.1)
    assert math.isclose(relative_error((2.0,) * 9), 0.0)


def test_below_the_smallest_size_the_first_two_points_count() -> None:
    times = StepTimes([point(4, 0.020), point(8, 0.024), affine(64), affine(256), affine(1024)])
    assert [times.seconds(size) for size in (1, 4, 6, 8)] == [pytest.approx(s) for s in (0.017, 0.020, 0.022, 0.024)]
    assert StepTimes([]).seconds(1) == math.inf


def test_points_exactly_on_a_line_are_on_it_however_small_their_error() -> None:
    def points(*seconds: float) -> list[TimePoint]:
        return [TimePoint(batch_size=n, seconds=s, error_seconds=0.0) for n, s in enumerate(seconds, start=1)]

    assert throughput._longest_line(points(1.0, 1.0, 1.0, 1.0)) == (1, throughput.Line(start=1.0, slope=0.0))
    assert throughput._longest_line(points(2.0, 1.0, 1.0, 1.0)) == (2, throughput.Line(start=1.0, slope=0.0))


def test_between_two_points_the_time_is_on_their_line_and_below_the_first_it_goes_on() -> None:
    """The last three are far off one line."""
    times = StepTimes([point(4, 1.0), point(8, 3.0), point(16, 4.0), point(32, 12.0)])
    sizes = (2, 4, 6, 8, 12, 16, 24, 32, 48)
    assert [times.seconds(size) for size in sizes] == [0.0, 1.0, 2.0, 3.0, 3.5, 4.0, 8.0, 12.0, 20.0]
