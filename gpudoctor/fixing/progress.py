"""Whether a command that installs makes progress: it says something, or it moves data."""

import re
import time
from contextlib import suppress
from pathlib import Path

IDLE_SECONDS = 600.0
"""Time limit without progress. pip and uv wait up to 30 s for an answer that does not come, and then try again."""

LONGEST_SECONDS = 7200.0
"""Time limit with progress."""

_STEP_BYTES = 1 << 20
"""Less than this in IDLE_SECONDS is no progress: a download at that rate would take weeks."""

_READS_PAGE = re.compile(r"\s*(?:Looking in |Collecting |Requirement already |INFO: |$)")
"""The last line of pip while it reads a page of an index. However much arrives, the page should end."""


class Progress:
    """The progress of a process. said: all that it has said."""

    said = ""

    def __init__(self, pid: int, idle_seconds: float) -> None:
        self._io = Path("/proc", str(pid), "io")  # elsewhere than on Linux a silent download cannot be seen
        self._idle_seconds = idle_seconds if self._io.exists() else LONGEST_SECONDS
        self._began = self._last = time.monotonic()
        self._seen = (0, 0)

    def ended(self, out: str, error: str) -> str:
        """Return why the process should be ended, as the end of a sentence about it; "" if it should go on."""
        self.said = f"{out}\n{error}"
        now = time.monotonic()
        seen = (
            len(self.said),
            0 if _READS_PAGE.match(_last_line(out or error)) else self._moved_bytes() // _STEP_BYTES,
        )
        if seen != self._seen:
            self._seen, self._last = seen, now
        if now > self._began + LONGEST_SECONDS:
            return f"took longer than {LONGEST_SECONDS / 3600:g} hours"
        if now > self._last + self._idle_seconds:
            return f"made no progress for {self._idle_seconds / 60:.2g} minutes"
        return ""

    def _moved_bytes(self) -> int:
        """Return how much it has read and written."""
        with suppress(OSError):
            return sum(map(int, re.findall(r"(?m)^[rw]char: (\d+)", self._io.read_text(encoding="ascii"))))
        return 0


def _last_line(text: str) -> str:
    return text.rstrip("\n").rpartition("\n")[2]
