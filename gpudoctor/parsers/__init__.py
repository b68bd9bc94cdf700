"""Texts that tools print, to facts. A parser raises `ValueError` with the text that it could not read."""

import re
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def required(pattern: str, text: str, what: str, flags: int = 0) -> re.Match[str]:
    """Return where the text matches. Raises ValueError: nowhere; `what` is what the text has not, or is not."""
    match = re.search(pattern, text, flags)
    if match is None:
        raise ValueError(f"{what}: {text[:200]!r}")
    return match


def attempt(parse: Callable[[str], T], text: str | None) -> T | None:
    """Return the result of `parse`; None without a text, or if it cannot be parsed."""
    try:
        return None if text is None else parse(text)
    except ValueError:
        return None
