"""What is said of a fact beside its value."""

from __future__ import annotations

from typing import NamedTuple


class Fact(NamedTuple):
    """What a field of a section means, in which unit, and where it is read on a live machine."""

    meaning: str
    unit: str = ""
    source: str = ""
