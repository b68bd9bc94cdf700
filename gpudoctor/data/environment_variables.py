"""Environment variables that change how GPUs are found and used, and those that cost something while they are set."""

import functools
from collections.abc import Mapping
from typing import Any

from gpudoctor.data.tables import load_table, records
from gpudoctor.model.record import record


@functools.cache
def environment_variables() -> frozenset[str]:
    """Return the name of every variable that changes how GPUs are found and used."""
    return frozenset(row["name"] for row in load_table("environment_variables")["variables"])


@functools.cache
def variables_with_paths() -> frozenset[str]:
    """Return the names of the variables whose values are paths; those of the others are words."""
    return frozenset(row["name"] for row in load_table("environment_variables")["variables"] if row.get("holds"))


@functools.cache
def allocator_keys() -> Mapping[str, Mapping[str, Any]]:
    """Return for each key of PyTorch's allocator what it takes, and the least number of MiB, 0 for any."""
    rows = load_table("environment_variables")["allocator_keys"]
    return {row["key"]: {"takes": row["takes"], "least": row.get("least", 0)} for row in rows}


@record
class DebugVariable:
    """A variable for finding errors, and the values with which it costs something.

    values: in upper case; "*" for any but 0. slows: every program becomes slower or fails. source: its documentation.
    """

    name: str
    values: tuple[str, ...]
    slows: bool
    cost: str
    source: str

    def is_on(self, value: str) -> bool:
        """Return whether this value costs something."""
        return value.upper() in self.values or ("*" in self.values and value != "0")


def debug_variables() -> tuple[DebugVariable, ...]:
    """Return every variable for finding errors."""
    return records(DebugVariable, "debug_variables", "variables")
