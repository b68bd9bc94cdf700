"""Commands to run next: at most two, which show what is still unknown and can be run on this machine."""

import re
from collections.abc import Mapping

from gpudoctor.data.tables import load_table
from gpudoctor.model import Python, System
from gpudoctor.model.report import NextStep
from gpudoctor.remedies.commands import is_windows, quote_value
from gpudoctor.triage.features import fits

MOST = 2
NOTEBOOK = "in a cell of the notebook, with ! in front"


def next_steps(features: frozenset[str], python: Python, system: System) -> tuple[NextStep, ...]:
    """Return what to run next, most informative first, without commands whose output the report contains."""
    windows = "os:windows" in features or is_windows(python, system)
    interpreter = quote_value(python.executable or "python", windows)
    names = {"python": interpreter if interpreter.isprintable() else "python"}
    found: dict[str, NextStep] = {}
    for row in load_table("next_steps")["steps"]:
        command = _filled(row["command"], names)
        asked = row["topic"] in found or any(step.command == command for step in found.values())
        asked = asked or bool(found and row.get("alone"))
        if not asked and fits(features, row.get("when", ()), row.get("unless", ())):
            where = NOTEBOOK if "place:colab" in features else row.get("where", "")
            found[row["topic"]] = NextStep(command=command, why=row["why"], where=where)
    return tuple(found.values())[:MOST]


def _filled(command: str, names: Mapping[str, str]) -> str:
    return re.sub(r"\{(\w+)\}", lambda match: names.get(match[1], match[0]), command)
