"""Texts that another program wrote, made fit to be shown and kept."""

from __future__ import annotations

from typing import Any

MAXIMUM_CHARACTERS = 1000
MAXIMUM_ITEMS = 256


def cleaned(value: Any) -> Any:
    """Return `value` (as JSON gives it) with every text in one line, free of control characters, and bounded."""
    if isinstance(value, str):
        return _cleaned_text(value)
    if isinstance(value, list):
        return [cleaned(item) for item in value[:MAXIMUM_ITEMS]]
    if isinstance(value, dict):
        return {str(name): cleaned(item) for name, item in value.items()}
    return value


def _cleaned_text(text: str) -> str:
    line = " ".join(text[: 4 * MAXIMUM_CHARACTERS].split())
    printable = "".join(character for character in line if character.isprintable())
    return printable if len(printable) <= MAXIMUM_CHARACTERS else printable[: MAXIMUM_CHARACTERS - 3] + "..."
