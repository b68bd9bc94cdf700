"""The limit files of control groups, of version 1 and 2."""

from __future__ import annotations

from collections.abc import Mapping

_NO_LIMIT_BYTES = 2**62  # version 1 writes the largest multiple of the page size for "no limit"


def memory_limit_bytes(texts: Mapping[str, str]) -> int:
    """Return the lowest memory limit among files by path; 0 for no limit.

    Raises:
        ValueError: a file holds no limit.
    """
    limits = [_number(text) for path, text in texts.items() if path.endswith(("/memory.max", "/memory.limit_in_bytes"))]
    return min((limit for limit in limits if limit is not None and limit < _NO_LIMIT_BYTES), default=0)


def cpu_limit(texts: Mapping[str, str]) -> float:
    """Return the lowest number of processors that the groups grant among files by path; 0 for no limit.

    Raises:
        ValueError: a file holds no limit.
    """
    limits = []
    for path, text in texts.items():
        folder, _, name = path.rpartition("/")
        if name == "cpu.max":
            limits.append(_share(*text.split(maxsplit=1)) if " " in text.strip() else _share(text, "100000"))
        elif name == "cpu.cfs_quota_us":
            limits.append(_share(text, texts.get(f"{folder}/cpu.cfs_period_us", "100000")))
    return min((limit for limit in limits if limit is not None), default=0.0)


def _share(quota: str, period: str) -> float | None:
    microseconds, per = _number(quota), _number(period)
    if microseconds is None or not per:
        return None
    return microseconds / per


def _number(text: str) -> int | None:
    """Return the limit; None for "max" and -1, which are no limit."""
    if len(text.strip()) > 20:  # the kernel's numbers have 64 bits
        raise ValueError(f"not a limit: {text[:40]!r}")
    number = -1 if text.strip() == "max" else int(text)
    return None if number < 0 else number
