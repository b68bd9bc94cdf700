"""Wait for what other processes do, however loaded the machine is."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path


def wait_until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    """Wait for `condition`, and fail after `seconds`."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"it did not come to be in {seconds:g} s"
        time.sleep(0.02)


def is_at_work(pid: int) -> bool:
    """Return whether the process is there, and is not a zombie that nobody has waited for."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
