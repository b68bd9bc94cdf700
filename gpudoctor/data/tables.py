"""The tables as they lie beside this file: JSON, read once, on first use."""

import functools
import os.path
from collections.abc import Mapping
from typing import Any, TypeVar

from gpudoctor.model.codec import from_json

T = TypeVar("T")


@functools.cache
def load_table(name: str) -> Mapping[str, Any]:
    """Return the table `name`. It holds `as_of` (the date it was checked), `about`, `sources` and lists of rows."""
    import json

    with open(os.path.join(os.path.dirname(__file__), f"{name}.json"), encoding="utf-8") as file:
        table: dict[str, Any] = json.load(file)
    return table


@functools.cache
def records(kind: type[T], name: str, rows: str) -> tuple[T, ...]:
    """Return a list of rows of the table `name` as records, whose fields are named like the columns."""
    table = load_table(name)
    return tuple(from_json(kind, {**row, "source": source_of(table, row)}) for row in table[rows])


def source_of(table: Mapping[str, Any], row: Mapping[str, Any], key: str = "source") -> str:
    """Return where a row was read: rows name their source by a key of the table's `sources`."""
    return str(table["sources"][row[key]])
