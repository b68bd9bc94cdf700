"""What the processes of a program read from disks and wrote to them. Source: proc_pid_io(5)."""

from __future__ import annotations

from collections.abc import Iterable

_READ, _WRITTEN = "read_bytes", "write_bytes"


class DiskUse:
    """Bytes since the watch began, also of processes that have ended meanwhile. The page cache counts as no disk."""

    def __init__(self) -> None:
        self._before: dict[int, tuple[int, int]] = {}
        self._total = [0, 0]
        self._is_known = False

    def look(self, pids: Iterable[int]) -> tuple[int, int] | None:
        """Return the bytes read and written so far by the processes of the program; None if nobody may see them."""
        now = {pid: found for pid in pids if (found := _io(pid)) is not None}
        for pid, found in now.items():
            # a process that is new has begun since the last look; at the first look, what was before does not count
            before = self._before.get(pid, (0, 0) if self._is_known else found)
            for place in (0, 1):
                self._total[place] += max(found[place] - before[place], 0)
        self._is_known = self._is_known or bool(now)
        self._before = now
        return (self._total[0], self._total[1]) if self._is_known else None


def _io(pid: int) -> tuple[int, int] | None:
    try:
        with open(f"/proc/{pid}/io", encoding="utf-8") as file:
            found = dict(line.split(": ") for line in file)
        return int(found[_READ]), int(found[_WRITTEN])
    except (OSError, ValueError, KeyError):  # another user's, ended meanwhile, or no Linux
        return None
