"""The header crt/host_config.h of a CUDA toolkit, which refuses host compilers that are too new."""

from __future__ import annotations

import re


def parse_newest_gcc(text: str) -> int:
    """Return the newest major version of gcc that the header accepts: 13 of "#if __GNUC__ > 13".

    Raises:
        ValueError: the header has no such line.
    """
    match = re.search(r"^\s*#\s*if\s+\(?\s*__GNUC__\s*>\s*(\d{1,3})\b", text, re.MULTILINE)
    if match is None:
        raise ValueError("no limit of __GNUC__ in host_config.h")
    return int(match[1])
