"""The time at which nvidia-smi was called: "Fri Sep  2 21:54:31 2022"."""

from __future__ import annotations

import re
import time

_TIME = re.compile(
    r"\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) (?P<month>Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
    r" {1,2}(?P<day>\d{1,2})"
    r" (?P<clock>\d{2}:\d{2}:\d{2}) (?P<year>20\d\d)\b"
    r"(?=[ +|=-]{1,400}NVIDIA-SMI \d| Driver Version)"
)


def time_of(flat: str) -> str | None:
    """Return the time above the last table or list of the text, which names no time zone, as if it were UTC."""
    found = [match.groupdict() for match in _TIME.finditer(flat)]
    for last in reversed(found):
        try:
            parsed = time.strptime("{year} {month} {day} {clock}".format(**last), "%Y %b %d %H:%M:%S")
        except ValueError:
            continue
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", parsed)
    return None
