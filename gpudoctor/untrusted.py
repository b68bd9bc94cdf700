"""Texts that another program wrote, made fit to be shown and kept."""

from __future__ import annotations

from typing import Any

MAXIMUM_CHARACTERS = 1000
MAXIMUM_ITEMS = 256
_SHOWN_CHARACTERS = 400


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


def clean(text: str, limit: int | None = _SHOWN_CHARACTERS) -> str:
    r"""Return `text` in one line: control and invisible characters written out ("\x1b"), the rest of a long text cut.

    Text from a machine may hold terminal escapes that hide, move or colour what stands around it.
    """
    cut = text if limit is None else text[:limit]
    shown = cut if cut.isprintable() else "".join(c if c.isprintable() else _written_out(c) for c in cut)
    return shown if len(cut) == len(text) else f"{shown}... ({len(text)} characters)"


def _written_out(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
