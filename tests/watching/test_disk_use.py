"""Bytes that a program reads from disks and writes to them."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from gpudoctor.watching.disk_use import DiskUse

SIZE = 2**20


def is_counted(folder: Path) -> bool:
    """Return whether the system counts what a process writes there: a file system in memory is no disk."""
    use = DiskUse()
    use.look([os.getpid()])
    write(folder)
    return (use.look([os.getpid()]) or (0, 0))[1] >= SIZE


def write(folder: Path) -> None:
    with open(folder / f"{time.monotonic_ns()}", "wb") as file:
        file.write(bytes(SIZE))
        file.flush()
        os.fsync(file.fileno())


def test_bytes_of_a_process_that_has_ended_still_count(tmp_path: Path) -> None:
    if not is_counted(tmp_path):
        pytest.skip("the system does not count these bytes")
    use = DiskUse()
    assert use.look([os.getpid()]) == (0, 0)
    write(tmp_path)
    seen = use.look([os.getpid()])
    assert seen is not None
    assert seen[1] >= SIZE
    assert use.look([]) == seen


def test_a_process_that_nobody_may_see() -> None:
    assert DiskUse().look([2**30]) is None
