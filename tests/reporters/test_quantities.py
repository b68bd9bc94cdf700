import math

import pytest

from gpudoctor.reporters import quantities


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "\u2013"),
        (0, "0"),
        (5203.4, "5,203"),
        (142_412.0, "142,412"),
        (87.256, "87.3"),
        (0.04213, "0.0421"),
        (3e-7, "0.000000300"),
        (-12.0, "-12.0"),
        (math.inf, "not finite"),
        (math.nan, "not finite"),
    ],
)
def test_three_digits_that_mean_something(value: float | None, shown: str) -> None:
    assert quantities.significant(value) == shown


@pytest.mark.parametrize(
    ("median", "spread", "shown"),
    [
        (None, None, "\u2013"),
        (0.0539, 0.0004, "53.9 ± 0.2"),
        (0.0539, None, "53.9"),
        (1.25, 0.02, "1,250 ± 10"),
        (0.0, 0.0, "0"),
        (math.nan, math.nan, "not finite"),
    ],
)
def test_a_step_has_as_many_decimals_as_its_spread(median: float | None, spread: float | None, shown: str) -> None:
    assert quantities.step_time(median, spread) == shown


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        (None, "\u2013"),
        (0.0, "0 %"),
        (2.13e-3, "0.21 %"),
        (4.4e-17, "< 0.001 %"),
        (1e-5, "0.0010 %"),
        (math.inf, "not finite"),
    ],
)
def test_errors(error: float | None, shown: str) -> None:
    assert quantities.relative_error(error) == shown


@pytest.mark.parametrize(
    ("size", "shown"),
    [
        (None, "\u2013"),
        (0, "0"),
        (20 * 2**30, "20.0"),
        (43 * 2**20, "0.042"),
        (3 * 2**28, "0.75"),
        (2**30, "1.0"),
        (2**40, "1,024.0"),
    ],
)
def test_sizes_in_gib(size: int | None, shown: str) -> None:
    assert quantities.gibibytes(size) == shown


def test_shares_and_times() -> None:
    assert [quantities.percent(share) for share in (None, 0.7142, 0.034, 1.0)] == ["\u2013", "71", "3.4", "100"]
    assert [quantities.duration(seconds) for seconds in (0.0, 2.25, 41.04, 185.0, math.inf)] == [
        "0 s",
        "2.2 s",
        "41 s",
        "3 min 5 s",
        "not finite s",
    ]
