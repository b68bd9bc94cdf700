"""What is read from some hundred reports, and decided: compared with `recorded_reports.jsonl`.

Each of its lines has a report's texts, the facts and symptoms read from them, the verdict, and the findings with their
commands. `recorded_evidence.json` has what the findings rest on, by the checksum of the texts. A change that is meant
shows there which reports it bears on: `python -m tests.test_recorded_reports` writes both files again, and their
difference is what to look at. No sentence is in them.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from gpudoctor.engine.runner import run_checks
from gpudoctor.model import Remedy, Report
from gpudoctor.model.codec import to_json
from gpudoctor.readers.report import read_texts
from tests.own_checks import own_checks

FILE = Path(__file__).parent / "recorded_reports.jsonl"
EVIDENCE = FILE.with_name("recorded_evidence.json")
RECORDED: list[dict[str, Any]] = [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]
CHECKS = own_checks()
BOOKKEEPING = ("schema", "taken_at", "reports", "words")


def diagnosed(texts: list[list[str]]) -> Report:
    return run_checks(CHECKS, read_texts([(name, text.encode()) for name, text in texts]))


def evidence(report: Report) -> list[Any]:
    """Return of each finding the facts that it rests on, whether they are certain, and what its remedies need."""
    return [
        [f.check_id, *f.facts, *([] if f.certain else [False]), *([*r.needs] for r in f.remedies if r.needs)]
        for f in report.findings
    ]


def named(texts: list[list[str]]) -> str:
    return f"{zlib.crc32(json.dumps(texts).encode()):08x}"


@cache
def recorded_evidence() -> Any:
    return json.loads(EVIDENCE.read_text(encoding="utf-8"))


def decided(report: Report) -> dict[str, Any]:
    """Return the facts, symptoms and decisions of a report."""
    facts: Any = {k: v for k, v in _known(to_json(report.snapshot)).items() if k not in BOOKKEEPING}
    symptoms = [[s["kind"], s["code"], s["library"], s["names"]] for s in to_json(report.snapshot)["symptoms"] or ()]
    findings = [
        [f.check_id, str(f.severity), f.caused_by or "", [list(remedy.commands) for remedy in f.remedies]]
        for f in report.findings
    ]
    triage = report.triage
    return {
        "facts": {**facts, "symptoms": symptoms},
        "verdict": report.verdict,
        "findings": findings,
        "next": [[step.command, step.where] for step in triage.next_steps] if triage else [],
        "possible": [cause.check for cause in triage.possible] if triage else [],
    }


def _known(value: Any) -> Any:
    """Return a section without what is unknown."""
    if isinstance(value, dict):
        return {name: _known(part) for name, part in value.items() if part is not None and part != []}
    return [_known(part) for part in value] if isinstance(value, list) else value


def repeats(remedies: Sequence[Remedy]) -> bool:
    """Return whether a fix is shown twice: with the same words and commands."""
    return len({(remedy.summary, remedy.commands) for remedy in remedies}) < len(remedies)


@pytest.mark.parametrize("line", RECORDED, ids=range(1, len(RECORDED) + 1))
def test_a_report_is_read_and_decided_as_before(line: dict[str, Any]) -> None:
    expected = {name: value for name, value in line.items() if name != "texts"}
    report = diagnosed(line["texts"])
    assert [finding.check_id for finding in report.findings if repeats(finding.remedies)] == []
    assert json.loads(json.dumps(decided(report))) == expected
    assert json.loads(json.dumps(evidence(report))) == recorded_evidence()[named(line["texts"])]


if __name__ == "__main__":
    texts_and_reports = [(line["texts"], diagnosed(line["texts"])) for line in RECORDED]
    lines = [{"texts": texts, **decided(report)} for texts, report in texts_and_reports]
    FILE.write_text("".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines), encoding="utf-8")
    rests = sorted({named(texts): evidence(report) for texts, report in texts_and_reports}.items())
    shown = ",\n".join(f"{json.dumps(name)}: {json.dumps(content)}" for name, content in rests)
    EVIDENCE.write_text(f"{{\n{shown}\n}}\n", encoding="utf-8")
