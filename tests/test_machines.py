"""The whole diagnosis on recorded machines.

A machine is a folder of tests/machines as `gpudoctor record` writes it, or such a recording edited into another
machine, with expected.json beside it. Those here so far are edited: the facts of the PyTorch wheels 2.13.0+cpu and
2.14.1+cu130 are recorded, what the driver and a GPU answer is written by hand in the shape that the probes keep.

    about         what the machine is, and what must be seen
    unread        sections that some probe could not tell anything of
    facts         facts that the probes must read from it, by their dotted path
    verdict       "healthy", "warning" or "error"
    exit_status   of `gpudoctor check`
    findings      [check, severity, caused_by] of every warning, error and consequence, in order
    advice        checks whose advice must be there; others may advise too
    first_remedy  the commands to paste for the first finding
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from gpudoctor.engine.checkup import exit_status
from gpudoctor.engine.runner import run_checks
from gpudoctor.model import Finding, Report, Severity, Snapshot, look_up
from gpudoctor.model.codec import from_json, to_json
from gpudoctor.probes.snapshot import take_snapshot
from gpudoctor.reporters import json_report, table
from gpudoctor.reporters.terminal import Screen
from gpudoctor.snapshots.recording import RecordedHost
from tests.own_checks import own_checks

FOLDER = Path(__file__).parent / "machines"
WIDTH = 80

pytestmark = pytest.mark.parametrize("name", sorted(path.parent.name for path in FOLDER.glob("*/recording.json")))


@cache
def diagnosed(name: str) -> Report:
    return run_checks(own_checks(), take_snapshot(RecordedHost.load(FOLDER / name)))


def expected(name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((FOLDER / name / "expected.json").read_text(encoding="utf-8"))
    return content


def matters(finding: Finding) -> bool:
    """Tell whether it is a problem or the consequence of one; the rest is advice."""
    return finding.severity is not Severity.INFO or finding.caused_by is not None


def test_diagnosis(name: str) -> None:
    report, wanted = diagnosed(name), expected(name)
    problems = [[f.check_id, str(f.severity), f.caused_by] for f in report.findings if matters(f)]
    assert (problems, report.verdict) == (wanted["findings"], wanted["verdict"])
    assert exit_status(report, "error") == wanted["exit_status"]


def test_one_fault_is_at_most_one_error(name: str) -> None:
    errors = [finding.check_id for finding in diagnosed(name).findings if finding.severity is Severity.ERROR]
    assert len(errors) <= 1


def test_first_remedy(name: str) -> None:
    first = next((finding for finding in diagnosed(name).findings if matters(finding)), None)
    commands = first.remedies[0].commands if first is not None else ()
    assert list(commands) == expected(name)["first_remedy"]


def test_advice(name: str) -> None:
    given = {finding.check_id for finding in diagnosed(name).findings if not matters(finding)}
    assert set(expected(name)["advice"]) <= given


def test_everything_recorded_is_read(name: str) -> None:
    snapshot, wanted, unread = diagnosed(name).snapshot, expected(name)["facts"], expected(name)["unread"]
    assert {fact: to_json(look_up(snapshot, fact)) for fact in wanted} == wanted
    assert [report.section for report in snapshot.reports if report.state not in ("ok", "absent")] == unread


def test_no_check_crashes(name: str) -> None:
    assert [result for result in diagnosed(name).skipped if result.reason.startswith("crashed")] == []


def test_a_snapshot_file_gives_the_same_findings(name: str) -> None:
    report = diagnosed(name)
    document = json.loads(json_report.render(report))
    text = json.dumps(to_json(report.snapshot))
    again = run_checks(own_checks(), from_json(Snapshot, json.loads(text), "snapshot"))
    findings = json.loads(json_report.render(again))["findings"]
    assert json.dumps(findings) == json.dumps(document["findings"])


def test_screen(name: str) -> None:
    """Commands are whole lines, whatever the width; nothing else is wider but a word that cannot be broken."""
    report = diagnosed(name)
    lines = table.render(report, screen=Screen(width=WIDTH)).splitlines()
    commands = [command for finding in report.findings for remedy in finding.remedies for command in remedy.commands]
    wide = [line.strip() for line in lines if len(line) > WIDTH]
    assert [line for line in wide if line not in commands and " " in line.removeprefix("see ")] == []
    assert all(any(line.endswith(command) for line in lines) for command in expected(name)["first_remedy"])
