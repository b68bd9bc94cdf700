"""Texts that tools print, to facts. A parser raises `ValueError` with the text that it could not read."""

import re


def required(pattern: str, text: str, what: str, flags: int = 0) -> re.Match[str]:
    """Return where the text matches. Raises ValueError: nowhere; `what` is what the text has not, or is not."""
    match = re.search(pattern, text, flags)
    if match is None:
        raise ValueError(f"{what}: {text[:200]!r}")
    return match
