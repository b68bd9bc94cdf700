"""Bounds and predictions of peak memory."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpudoctor.model.tuning import OUT_OF_MEMORY, Measurement
from gpudoctor.tuning.memory import MemoryModel, MemoryPoint, model_of

MIB = 2**20
RESIDENT = 100 * MIB
CURVES = ((300 * MIB, MIB), (120 * MIB, 5 * MIB))
"""Bends at a batch of 45: below it gradients fill the peak, above it activations do."""


def peak(batch_size: int) -> int:
    return max(start + slope * batch_size for start, slope in CURVES)


def point(batch_size: int, held: int | None = None) -> MemoryPoint:
    return MemoryPoint(batch_size=batch_size, peak=peak(batch_size), held=held or peak(batch_size))


def model(*batch_sizes: int) -> MemoryModel:
    return MemoryModel([point(size) for size in batch_sizes], RESIDENT)


curves = st.lists(
    st.tuples(st.integers(RESIDENT, 8 * RESIDENT), st.integers(0, 64 * MIB)), min_size=1, max_size=5
).filter(lambda found: max(slope for _, slope in found) > 0)
batch_sizes = st.lists(st.integers(1, 4096), min_size=1, max_size=5, unique=True)


@settings(max_examples=50)
@given(curves, batch_sizes, st.integers(1, 16384))
def test_no_batch_takes_more_than_the_upper_bound(
    curves: list[tuple[int, int]], measured: list[int], batch_size: int
) -> None:
    def truth(size: int) -> int:
        return max(start + slope * size for start, slope in curves)

    bounds = MemoryModel(
        [MemoryPoint(batch_size=size, peak=truth(size), held=truth(size)) for size in measured], RESIDENT
    )
    assert truth(batch_size) <= bounds.upper(batch_size) + 1


@settings(max_examples=50)
@given(curves, batch_sizes, st.integers(RESIDENT, 500 * RESIDENT))
def test_what_is_proved_to_fit_fits(curves: list[tuple[int, int]], measured: list[int], limit: int) -> None:
    def truth(size: int) -> int:
        return max(start + slope * size for start, slope in curves)

    bounds = MemoryModel(
        [MemoryPoint(batch_size=size, peak=truth(size), held=truth(size)) for size in measured], RESIDENT
    )
    largest = bounds.largest_proved(limit)
    assert largest == 0 or truth(largest) <= limit


def test_beyond_the_bend_the_prediction_is_exact() -> None:
    assert model(64, 256).estimate(1024) == peak(1024)


def test_before_the_bend_it_is_too_low_and_the_bound_is_not() -> None:
    before = model(8, 32)
    assert before.estimate(256) < peak(256) < before.upper(256)


def test_between_two_batches_the_chord_is_an_upper_bound() -> None:
    assert peak(64) <= model(32, 256).upper(64) == pytest.approx(model(32, 256).estimate(64))


def test_one_batch_predicts_along_the_resident_memory() -> None:
    assert model(64).estimate(128) == RESIDENT + 2 * (peak(64) - RESIDENT)


@pytest.mark.parametrize(
    ("freed", "limit", "largest"),
    [
        pytest.param(0.0, 1000, 50, id="nothing is freed: what it holds fills the memory"),
        pytest.param(0.5, 1000, 57, id="half of the cache is"),
        pytest.param(1.0, 1000, 66, id="all of it: what is allocated fills the memory"),
        pytest.param(0.5, 9000, 80, id="no further than a line through three points is believed"),
    ],
)
def test_the_largest_batch_for_which_a_share_of_the_cache_is_freed(freed: float, limit: int, largest: int) -> None:
    """15 MiB are allocated for each sample, and 5 more are held."""
    points = [MemoryPoint(batch_size=b, peak=15 * b * MIB, held=20 * b * MIB) for b in (10, 20, 40)]
    assert MemoryModel(points, 0).largest_tight(limit * MIB, freed) == largest
    assert MemoryModel(points[2:], 0).largest_tight(limit * MIB, freed) == min(largest, 60)


def test_a_line_is_believed_for_half_as_much_again_and_for_twice_if_three_points_are_on_it() -> None:
    flat = [MemoryPoint(batch_size=b, peak=1000 * MIB + MIB * b, held=1000 * MIB + MIB * b) for b in (8, 16, 32)]
    limit = 1200 * MIB
    assert MemoryModel(flat[1:], 0).largest_proved(limit) == 36
    assert MemoryModel(flat[1:], 0).largest_likely(limit) == 48
    assert MemoryModel(flat, 0).largest_likely(limit) == 64


def test_after_one_batch_a_single_sample_more_may_be_tried() -> None:
    only = MemoryModel([MemoryPoint(batch_size=2, peak=900 * MIB, held=900 * MIB)], 0)
    assert (only.largest_proved(1000 * MIB), only.largest_likely(1000 * MIB)) == (2, 3)
    assert only.largest_likely(920 * MIB) == 2


def test_after_one_batch_only_what_is_allocated_keeps_from_a_sample_more() -> None:
    held = 990 * MIB
    assert MemoryModel([MemoryPoint(batch_size=2, peak=949 * MIB, held=held)], 0).largest_likely(1000 * MIB) == 3
    assert MemoryModel([MemoryPoint(batch_size=2, peak=950 * MIB, held=held)], 0).largest_likely(1000 * MIB) == 2


def test_what_the_allocator_holds_counts_not_what_is_allocated() -> None:
    wasteful = MemoryModel([point(64, held=2 * peak(64))], RESIDENT)
    limit = peak(1024)
    assert wasteful.largest_proved(limit) < model(64).largest_proved(limit)


def test_memory_that_is_not_monotone_widens_the_bound() -> None:
    jump = 50 * MIB
    told = MemoryModel([point(64), point(128, held=peak(128) + jump + RESIDENT), point(256)], RESIDENT)
    assert told.upper(512) > model(64, 128, 256).upper(512)


def test_nothing_fits_if_the_smallest_batch_does_not() -> None:
    assert model(64).largest_proved(peak(64)) == 0


def test_a_device_that_shows_no_memory_gives_no_model() -> None:
    assert not model_of([Measurement(precision="fp32", batch_size=8, step_seconds=(1.0,))])


def test_the_model_takes_the_larger_of_two_measurements_and_no_failures() -> None:
    first = Measurement(
        precision="fp32", batch_size=8, peak_memory_bytes=1000, resident_memory_bytes=100, reserved_memory_bytes=1200
    )
    again = Measurement(precision="fp32", batch_size=8, peak_memory_bytes=1100, resident_memory_bytes=100)
    failed = Measurement(precision="fp32", batch_size=16, status=OUT_OF_MEMORY)
    found = model_of([first, again, failed])
    assert found.points == [MemoryPoint(batch_size=8, peak=1100, held=1200)]
    assert found.resident == 100


def of_sizes(*points: tuple[int, int], resident: int = 0) -> MemoryModel:
    return MemoryModel([MemoryPoint(batch_size=size, peak=held, held=held) for size, held in points], resident)


@pytest.mark.parametrize(
    ("points", "proved", "likely"),
    [
        pytest.param([(8, 990)], 8, 8, id="all but the headroom"),
        pytest.param([(8, 991)], 0, 0, id="a byte more"),
        pytest.param([(2, 950)], 2, 2, id="a twentieth is not free"),
        pytest.param([(2, 949)], 2, 3, id="a twentieth is free"),
        pytest.param([(8, 500), (16, 1200), (32, 1300)], 11, 11, id="along the next one, which does not fit"),
        pytest.param([(8, 81), (16, 90), (24, 100)], 237, 237, id="proved by far"),
        pytest.param([(8, 900), (16, 910)], 17, 24, id="half as much again"),
        pytest.param([(8, 900), (16, 910), (24, 920)], 25, 48, id="three on a line: twice"),
        pytest.param([(8, 881), (16, 890), (24, 908)], 26, 48, id="as near to a line as counts"),
        pytest.param([(8, 881), (16, 890), (24, 909)], 26, 36, id="farther from a line"),
        pytest.param([(8, 400), (16, 400)], 39, 39, id="no growth"),
        pytest.param([(2, 200), (4, 400), (6, 600), (9, 900)], 9, 10, id="a sample that takes all of the headroom"),
        pytest.param([(2, 201), (4, 401), (6, 601), (9, 901)], 9, 9, id="a sample that takes a byte more"),
        pytest.param([(2, 200), (9, 900)], 9, 9, id="two points show no line to spend the headroom on"),
        pytest.param([(97, 961), (98, 971), (99, 981)], 99, 100, id="a sample as large as the headroom"),
        pytest.param([(98, 962), (99, 972), (100, 982)], 100, 100, id="a sample smaller than the headroom"),
    ],
)
def test_how_far_a_thousand_bytes_reach(points: list[tuple[int, int]], proved: int, likely: int) -> None:
    found = of_sizes(*points)
    assert (found.largest_proved(1000), found.largest_likely(1000)) == (proved, likely)


def test_a_model_of_one_of_none_and_of_several() -> None:
    assert [of_sizes(*points).shows_slope for points in ([], [(8, 5)], [(8, 5), (9, 5)], [(8, 5), (9, 6)])] == [
        *(False, False, False),
        True,
    ]
    assert [of_sizes((8, 80), (16, 100)).estimate(size) for size in (4, 8, 12, 16, 20)] == [70, 80, 90, 100, 110]
    assert of_sizes((8, 80), (16, 100), resident=75).estimate(4) == 75
    assert [of_sizes((8, 80), (16, 100)).upper(size) for size in (4, 8, 12, 16, 20)] == [80, 80, 90, 100, 125]
    untold = Measurement(precision="fp32", batch_size=8, peak_memory_bytes=0)
    assert (model_of([untold]).points, model_of([untold]).resident, model_of([]).resident) == (
        [MemoryPoint(batch_size=8, peak=0, held=0)],
        *(0, 0),
    )
