"""The facts of the recorded machines, and the decisions with one thing changed, compared with `changed_machines.json`.

A section or a fact is unknown, a yes is a no, or a section is that of another machine: combinations that nobody would
write down, each of them diagnosed. `changed_evidence.json` has what the findings rest on. What is expected is what the
program decided when somebody last looked: `python -m tests.test_changed_machines` writes both files again; their
difference is what to look at. No sentence is in them.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from gpudoctor.engine.runner import run_checks
from gpudoctor.model import SECTIONS, Report, Snapshot
from gpudoctor.model.codec import to_json
from gpudoctor.probes.snapshot import take_snapshot
from gpudoctor.snapshots.recording import RecordedHost
from tests.own_checks import own_checks
from tests.test_recorded_reports import evidence

FILE = Path(__file__).parent / "changed_machines.json"
EVIDENCE = FILE.with_name("changed_evidence.json")
MACHINES = sorted(path.parent.name for path in (FILE.parent / "machines").glob("*/recording.json"))
CHECKS = own_checks()
PARTS = 8
"""One of so many changes is looked at: a stable choice, by the name of the change."""

Decisions = list[Any]


@cache
def snapshot_of(name: str) -> Snapshot:
    return take_snapshot(RecordedHost.load(FILE.parent / "machines" / name))


def changed(name: str) -> Iterator[tuple[str, Snapshot]]:
    """Yield each change of a machine and the changed machine."""
    whole = snapshot_of(name)
    for section in sorted({*SECTIONS} - {"symptoms"}):
        value = getattr(whole, section)
        if value is not None:
            yield f"no {section}", _with(whole, section, None)
        for other in MACHINES:
            transplanted = getattr(snapshot_of(other), section)
            if transplanted not in (value, None) and _is_chosen(f"{name} {section} {other}"):
                yield f"{section} of {other}", _with(whole, section, transplanted)
        for fact, content in _contents(value):
            if _is_chosen(f"{name} {section}.{fact} {content!r}"):
                changed_section: Any = (
                    tuple(replace(item, **{fact: content}) for item in value)
                    if isinstance(value, tuple)
                    else replace(value, **{fact: content})
                )
                shown = content if content is None or isinstance(content, bool | int) else "empty"
                yield f"{section}.{fact}: {shown}", _with(whole, section, changed_section)


def _with(snapshot: Snapshot, section: str, content: Any) -> Snapshot:
    return replace(snapshot, **{section: content})


def _contents(section: Any) -> Iterator[tuple[str, Any]]:
    """Yield the facts of a section with another content each."""
    first = section[0] if isinstance(section, tuple) and section else section
    if not is_dataclass(first):
        return
    for field in fields(first):
        value = getattr(first, field.name)
        if value is not None and "None" in str(field.type):
            yield field.name, None
        if isinstance(value, bool):
            yield field.name, not value
        elif isinstance(value, int):
            yield from ((field.name, number) for number in (0, value * 2))
        elif type(value) is tuple and value:  # a version is a tuple, too, and never empty
            yield field.name, ()


def _is_chosen(change: str) -> bool:
    return zlib.crc32(change.encode()) % PARTS == 0


@cache
def reports_on(name: str) -> dict[str, Report]:
    """Return the diagnosis of the machine, and of each change of it."""
    snapshots = {"as recorded": snapshot_of(name), **dict(changed(name))}
    return {change: run_checks(CHECKS, snapshot) for change, snapshot in snapshots.items()}


def decisions(report: Report) -> Decisions:
    found = [
        [f.check_id, str(f.severity), f.caused_by or "", [list(remedy.commands) for remedy in f.remedies]]
        for f in report.findings
    ]
    return [report.verdict, *found]


def facts_of(name: str) -> Any:
    """Return what is known of the machine, but for its packages: they are recorded as they are."""
    snapshot = snapshot_of(name)
    return {
        section: _known(to_json(getattr(snapshot, section)))
        for section in sorted({*SECTIONS} - {"symptoms"})
        if getattr(snapshot, section) is not None
    }


def _known(value: Any) -> Any:
    if isinstance(value, dict):
        parts = {name: part for name, part in value.items() if name not in ("packages", "distributions")}
        return {name: _known(part) for name, part in parts.items() if part is not None and part != []}
    return [_known(part) for part in value] if isinstance(value, list) else value


def changed_decisions(name: str) -> dict[str, Decisions]:
    """Return what is decided of the machine, and after each change that bears on it."""
    found = {change: decisions(report) for change, report in reports_on(name).items()}
    whole = found.pop("as recorded")
    return {
        "as recorded": whole,
        **{change: _difference(whole, after) for change, after in found.items() if after != whole},
    }


def changed_evidence(name: str) -> dict[str, Any]:
    """Return the evidence of the findings, and after each change that of the findings that are new or others."""
    found = {change: evidence(report) for change, report in reports_on(name).items()}
    whole = found.pop("as recorded")
    others = {change: [line for line in after if line not in whole] for change, after in found.items()}
    return {"as recorded": whole, **{change: lines for change, lines in others.items() if lines}}


def _difference(before: Decisions, after: Decisions) -> Decisions:
    """Return what is new, and the checks of which the finding is gone or another."""
    gone = [line[0] for line in before[1:] if line not in after]
    return [*([] if after[0] == before[0] else after[:1]), *(line for line in after[1:] if line not in before), gone]


@pytest.mark.parametrize("name", MACHINES)
def test_the_decisions_on_a_changed_machine(name: str) -> None:
    expected = json.loads(FILE.read_text(encoding="utf-8"))[name]
    assert {"facts": expected["facts"], **changed_decisions(name)} == expected
    assert json.loads(json.dumps(changed_evidence(name))) == json.loads(EVIDENCE.read_text(encoding="utf-8"))[name]


@pytest.mark.parametrize("name", MACHINES)
def test_the_facts_of_a_machine(name: str) -> None:
    assert facts_of(name) == json.loads(FILE.read_text(encoding="utf-8"))[name]["facts"]


if __name__ == "__main__":
    machines = []
    for name in MACHINES:
        entries = {"facts": facts_of(name), **changed_decisions(name)}
        lines = (
            f"{json.dumps(change)}: {json.dumps(content, ensure_ascii=False)}" for change, content in entries.items()
        )
        machines.append(f"{json.dumps(name)}: {{\n" + ",\n".join(lines) + "\n}")
    FILE.write_text("{\n" + ",\n".join(machines) + "\n}\n", encoding="utf-8")
    shown = (
        f"{json.dumps(name)}: {{\n"
        + ",\n".join(f"{json.dumps(change)}: {json.dumps(lines)}" for change, lines in changed_evidence(name).items())
        + "\n}"
        for name in MACHINES
    )
    EVIDENCE.write_text("{\n" + ",\n".join(shown) + "\n}\n", encoding="utf-8")
