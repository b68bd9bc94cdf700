"""What is said of a fact beside its value."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any, NamedTuple, get_type_hints


class Fact(NamedTuple):
    """What a field of a section means, in which unit, and where it is read on a live machine."""

    meaning: str
    unit: str = ""
    source: str = ""


def fact_of(record: type[Any], field: str) -> Fact | None:
    """Return what is said of the field of a record; None where nothing is."""
    annotation = getattr(record, "__annotations__", {}).get(field)
    if annotation is None:
        return None
    alone = SimpleNamespace(__annotations__={field: annotation})  # reading those of all fields takes a millisecond
    hint = get_type_hints(alone, vars(sys.modules[record.__module__]), include_extras=True)[field]
    return next((extra for extra in getattr(hint, "__metadata__", ()) if isinstance(extra, Fact)), None)
