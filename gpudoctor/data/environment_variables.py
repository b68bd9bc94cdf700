"""Environment variables that change how GPUs are found and used."""

from __future__ import annotations

import functools

from gpudoctor.data.tables import load_table, source_of
from gpudoctor.model.record import record


@record
class EnvironmentVariable:
    """A variable, what it does, and what goes wrong with it ("" for nothing known)."""

    name: str
    meaning: str
    pitfall: str
    source: str


@functools.cache
def environment_variables() -> tuple[EnvironmentVariable, ...]:
    """Return every variable in the table."""
    table = load_table("environment_variables")
    return tuple(
        EnvironmentVariable(
            name=row["name"], meaning=row["meaning"], pitfall=row["pitfall"] or "", source=source_of(table, row)
        )
        for row in table["variables"]
    )
