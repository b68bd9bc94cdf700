"""Environment variables that change how GPUs are found and used."""

from __future__ import annotations

import functools

from gpudoctor.data.tables import load_table


@functools.cache
def environment_variables() -> frozenset[str]:
    """Return the name of every variable in the table."""
    return frozenset(row["name"] for row in load_table("environment_variables")["variables"])
