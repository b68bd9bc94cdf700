"""The tables as they lie beside this file: JSON, read once, on first use."""

from __future__ import annotations

import functools
import os.path
from collections.abc import Mapping
from typing import Any


@functools.cache
def load_table(name: str) -> Mapping[str, Any]:
    """Return the table `name`. It holds `as_of` (the date it was checked), `about`, `sources` and lists of rows."""
    import json

    with open(os.path.join(os.path.dirname(__file__), f"{name}.json"), encoding="utf-8") as file:
        table: dict[str, Any] = json.load(file)
    return table


def source_of(table: Mapping[str, Any], row: Mapping[str, Any], key: str = "source") -> str:
    """Return where a row was read: rows name their source by a key of the table's `sources`."""
    return str(table["sources"][row[key]])
