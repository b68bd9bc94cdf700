"""What each check and conclusion decides from the messages that it names, alone and in pairs, on four machines.

The decisions are compared with `every_pair.json`: outcome, severities, facts and fixes, no sentence. Only what the
messages change is recorded. `python -m tests.checks.test_every_pair` writes the file again; its difference is what to
look at.
"""

from __future__ import annotations

import ast
import json
import zlib
from collections.abc import Iterator
from dataclasses import replace
from fnmatch import fnmatch
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from gpudoctor.conclusions import Facts
from gpudoctor.engine.runner import run_with
from gpudoctor.model import Fix, Snapshot, Symptom
from gpudoctor.model.conclusions import CONCLUSIONS
from gpudoctor.symptoms import group
from gpudoctor.symptoms.matching import recognise
from gpudoctor.symptoms.tables import failure_messages, row_of
from tests.conclusions.test_every_symptom import MACHINES, _different, machine
from tests.own_checks import own_checks
from tests.symptoms.test_every_row import text_of
from tests.symptoms.test_groups import GROUPS

FILE = Path(__file__).parent / "every_pair.json"
ROOT = Path(__file__).parents[2]
CHECKS = {check.id: check for check in own_checks()}
MOST_OF_A_PATTERN = 2
PAIRS = 20
"""So many pairs of messages of each module are looked at, a stable choice."""

Decision = Any


@cache
def symptom(kind: str) -> Symptom | None:
    """Return the symptom of a text in which the row recognises its message."""
    row = row_of(kind)
    assert row is not None
    found = (each for _, each in recognise(" ".join(text_of(row).split())) if each.kind == kind)
    return next((replace(each, source="report.txt") for each in found), None)


@cache
def with_messages(name: str, kinds: tuple[str, ...]) -> Facts:
    snapshot: Snapshot = machine(name)
    found = [each for each in map(symptom, kinds) if each is not None]
    first = len(snapshot.symptoms or ())
    added = (replace(each, fact=f"symptoms[{first + number}].text") for number, each in enumerate(found))
    return Facts(replace(snapshot, symptoms=(*(snapshot.symptoms or ()), *added)))


def fix_text(fix: Fix) -> str:
    """Return a fix with its arguments, of a sentence only that there is one."""
    told = (f"{key}={'...' if str(value).count(' ') > 2 else value}" for key, value in fix.arguments.items() if value)
    return " ".join((fix.name, *told))


@cache
def decision(name: str, place: str, kinds: tuple[str, ...]) -> Decision:
    """Return what a check (by its id) or a conclusion (by its name) makes of the machine with the messages."""
    facts = with_messages(place, kinds)
    if name in CHECKS:
        result = run_with(CHECKS[name], facts)
        found = [
            [each.severity.name, *each.facts, *map(fix_text, each.fixes), *(["likely"] if not each.certain else [])]
            for each in result.findings
        ]
        return json.loads(json.dumps([result.outcome.name, *found]))
    return facts.get(name)  # a conclusion, or None


def change(name: str, place: str, kinds: tuple[str, ...]) -> Decision:
    """Return the decision if the messages make it another one, else None."""
    before, after = decision(name, place, ()), decision(name, place, kinds)
    if before == after:
        return None
    return after if name in CHECKS else json.loads(json.dumps(_different("", before, after)))


def named_kinds(module: Path) -> list[str]:
    """Return the kinds of messages that a module names; of a pattern the first few."""
    texts = {str(node.value) for node in ast.walk(ast.parse(module.read_text())) if isinstance(node, ast.Constant)}
    texts |= {kind for text in texts if text in GROUPS or text[:1] == "@" for kind in group(text.lstrip("@"))}
    kinds = [row.id for row in failure_messages()]
    found: dict[str, None] = {}
    for text in sorted(texts):
        if "-" in text:
            found.update(dict.fromkeys([kind for kind in kinds if fnmatch(kind, text)][:MOST_OF_A_PATTERN]))
    return [kind for kind in found if symptom(kind) is not None]


def every_change(name: str) -> Iterator[tuple[str, Decision]]:
    folder = "checks" if name in CHECKS else "gpudoctor/conclusions"
    kinds = named_kinds(ROOT / folder / f"{name.replace('-', '_')}.py")
    pairs = sorted(combinations(kinds, 2), key=lambda pair: zlib.crc32(" ".join((name, *pair)).encode()))[:PAIRS]
    for chosen in [*((kind,) for kind in kinds), *pairs]:
        for place in MACHINES:
            changed = change(name, place, chosen)
            if changed is not None:
                yield f"{place}: {' + '.join(chosen)}", changed


@cache
def recorded() -> dict[str, dict[str, Decision]]:
    return json.loads(FILE.read_text(encoding="utf-8"))  # type: ignore[no-any-return]


@pytest.mark.parametrize("name", [*CHECKS, *CONCLUSIONS])
def test_what_messages_change(name: str) -> None:
    expected = recorded().get(name, {})
    found = {}
    for key in expected:
        place, _, kinds = key.partition(": ")
        found[key] = change(name, place, tuple(kinds.split(" + ")))
    assert found == expected


if __name__ == "__main__":
    parts = []
    for each in (*CHECKS, *CONCLUSIONS):
        lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in every_change(each)]
        if lines:
            parts.append(f"{json.dumps(each)}: {{\n" + ",\n".join(lines) + "\n}")
    FILE.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")
