"""The tables next to this file: JSON, read once, on first use."""

import functools
import os.path
from collections.abc import Mapping
from typing import Any, TypeVar

from gpudoctor.model.codec import from_json, json_next_to

T = TypeVar("T")


def load_table(name: str) -> Mapping[str, Any]:
    """Return the table `name`. It contains `as_of` (the date it was checked), `about`, `sources` and lists of rows."""
    table: dict[str, Any] = json_next_to(__file__, name)
    return table


def table_dates() -> dict[str, str]:
    """Return the name of each table, those of messages too, and the date on which it was checked."""
    import json

    package = os.path.dirname(os.path.dirname(__file__))
    dates = {}
    for folder, said in (("data", ""), (os.path.join("symptoms", "tables"), "messages: ")):
        for file in sorted(os.listdir(os.path.join(package, folder))):
            if file.endswith(".json"):
                with open(os.path.join(package, folder, file), encoding="utf-8") as text:
                    dates[said + file[:-5].replace("_", " ")] = json.load(text)["as_of"]
    return dates


@functools.cache
def records(kind: type[T], name: str, rows: str) -> tuple[T, ...]:
    """Return a list of rows of the table `name` as records, whose fields are named like the columns."""
    table = load_table(name)
    return tuple(from_json(kind, {**row, "source": source_of(table, row)}) for row in table[rows])


def source_of(table: Mapping[str, Any], row: Mapping[str, Any], key: str = "source") -> str:
    """Return where a row was read: rows name their source by a key of the table's `sources`."""
    return str(table["sources"][row[key]])
