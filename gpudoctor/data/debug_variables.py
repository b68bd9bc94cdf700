"""Environment variables for finding errors, and what each costs while it is set."""

from __future__ import annotations

import functools

from gpudoctor.data.tables import load_table, source_of
from gpudoctor.model.record import record


@record
class DebugVariable:
    """A variable, and the values with which it costs something.

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


@functools.cache
def debug_variables() -> tuple[DebugVariable, ...]:
    """Return every row of the table."""
    table = load_table("debug_variables")
    return tuple(
        DebugVariable(
            name=row["name"],
            values=tuple(row["values"]),
            slows=row["slows"],
            cost=row["cost"],
            source=source_of(table, row),
        )
        for row in table["variables"]
    )
