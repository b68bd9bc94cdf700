"""The file properties of a node of AMD's compute driver, /sys/class/kfd/kfd/topology/nodes/*/properties."""

from __future__ import annotations

import re


def parse_gfx_target(text: str) -> str:
    """Return the gfx target of a node: "gfx90a" of "gfx_target_version 90010"; "" for a node that is no GPU.

    Raises:
        ValueError: the text has no such line.
    """
    match = re.search(r"^gfx_target_version (\d{1,7})$", text, re.MULTILINE)
    if match is None:
        raise ValueError(f"no gfx_target_version: {text[:200]!r}")
    number = int(match[1])
    if number == 0:
        return ""
    major, minor, stepping = number // 10000, number // 100 % 100, number % 100
    return f"gfx{major}{minor:x}{stepping:x}"
