"""A section of which several answers each tell a part."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, TypeVar

T = TypeVar("T")


def first_known(*parts: T) -> T:
    """Return the section whose facts are those of the first part that knows them; a single part as it is."""
    if len(parts) == 1:
        return parts[0]
    section: Any = parts[0]
    names = [item.name for item in fields(section)]
    known = {name: next((v for v in (getattr(p, name) for p in parts) if v is not None), None) for name in names}
    merged: T = replace(section, **known)
    return merged
