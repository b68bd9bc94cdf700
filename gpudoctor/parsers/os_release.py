"""The text of /etc/os-release."""

from __future__ import annotations

import re

_ASSIGNMENT = r"([A-Za-z_][A-Za-z0-9_]*)=(.*)"


def parse_os_release(text: str) -> dict[str, str]:
    """Return the variables of an os-release file, without their quotes.

    Raises:
        ValueError: no line of the text sets a variable.
    """
    matches = (re.fullmatch(_ASSIGNMENT, line.strip()) for line in text.splitlines())
    variables = {match[1]: _unquote(match[2]) for match in matches if match}
    if not variables:
        raise ValueError(f"not an os-release file: {text[:200]!r}")
    return variables


def _unquote(value: str) -> str:
    if len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'":
        value = value[1:-1]
    return re.sub(r"\\(.)", r"\1", value)
