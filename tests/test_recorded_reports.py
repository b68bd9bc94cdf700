"""What is read from some hundred reports, and decided: compared with `recorded_reports.jsonl`.

Each of its lines has a report's texts, the facts and symptoms read from them, the verdict, and the findings with their
commands. A change that is meant shows there which reports it bears on: `python -m tests.test_recorded_reports` writes
the file again, and its difference is what to look at. No sentence is in it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gpudoctor.engine.catalog import load_checks
from gpudoctor.engine.runner import run_checks
from gpudoctor.model.codec import to_json
from gpudoctor.readers.report import read_texts

FILE = Path(__file__).parent / "recorded_reports.jsonl"
RECORDED: list[dict[str, Any]] = [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]
CHECKS = load_checks()
BOOKKEEPING = ("schema", "taken_at", "reports")


def decided(texts: list[list[str]]) -> dict[str, Any]:
    """Return the facts, symptoms and decisions of a report."""
    report = run_checks(CHECKS, read_texts([(name, text.encode()) for name, text in texts]))
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


@pytest.mark.parametrize("line", RECORDED, ids=range(1, len(RECORDED) + 1))
def test_a_report_is_read_and_decided_as_before(line: dict[str, Any]) -> None:
    expected = {name: value for name, value in line.items() if name != "texts"}
    assert json.loads(json.dumps(decided(line["texts"]))) == expected


if __name__ == "__main__":
    lines = [{"texts": line["texts"], **decided(line["texts"])} for line in RECORDED]
    FILE.write_text("".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines), encoding="utf-8")
