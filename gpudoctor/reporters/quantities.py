"""Numbers with their units, as a person reads them: three or four digits that mean something, thousands separated."""

import math

_SMALLEST_ERROR = 1e-5  # more decimals do not help: fp32 has 0.00001 % by itself

UNKNOWN = "\u2013"
"""An en dash, in the cell of a table; a legend says what it means."""


def significant(value: float | None, digits: int = 3) -> str:
    """Return `value` with so many significant digits, but every digit before the decimal point: "5,203", "0.0421"."""
    if value is None:
        return UNKNOWN
    if not math.isfinite(value):
        return "not finite"
    if value == 0:
        return "0"
    return f"{value:,.{_decimals(value, digits)}f}"


def _decimals(value: float, digits: int) -> int:
    return max(digits - 1 - math.floor(math.log10(abs(value))), 0)


def rate(value: float | None) -> str:
    """Return a throughput without its unit: "5,203", "87.25"."""
    return significant(value, 4)


def milliseconds(seconds: float | None) -> str:
    """Return a time in ms, without the unit."""
    return significant(None if seconds is None else seconds * 1e3)


def step_time(median_seconds: float | None, spread_seconds: float | None) -> str:
    """Return the time of a step in ms with half of its interquartile range: "53.9 ± 0.2"."""
    if median_seconds is None or spread_seconds is None or not math.isfinite(median_seconds) or median_seconds <= 0:
        return milliseconds(median_seconds)
    decimals = _decimals(median_seconds * 1e3, 3)
    return f"{milliseconds(median_seconds)} ± {spread_seconds * 500:,.{decimals}f}"


def gibibytes(size_bytes: float | None) -> str:
    """Return a size in GiB, without the unit: "18.7", "0.042"."""
    if size_bytes is None:
        return UNKNOWN
    return f"{size_bytes / 2**30:,.1f}" if size_bytes >= 2**30 else significant(size_bytes / 2**30, 2)


def percent(share: float | None) -> str:
    """Return a share in percent, without the sign."""
    return UNKNOWN if share is None else significant(share * 100, 2)


def relative_error(error: float | None) -> str:
    """Return a relative error: "0.21 %"."""
    shown = "< 0.001" if error is not None and 0 < error < _SMALLEST_ERROR else percent(error)
    return shown if shown in (UNKNOWN, "not finite") else f"{shown} %"


def duration(seconds: float) -> str:
    """Return a time as "41 s" or "3 min 5 s"."""
    if not 60 <= seconds < math.inf:
        return f"{significant(seconds, 2)} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes:,} min {rest} s"
