"""The report and the snapshot as JSON, fit to be posted: schemas gpudoctor/report/1 and gpudoctor/snapshot/1."""

import json
from typing import Any

from gpudoctor.model import Finding, Snapshot, Triage
from gpudoctor.model import snapshot as snapshots
from gpudoctor.model.codec import to_json
from gpudoctor.model.report import SCHEMA, Report
from gpudoctor.privacy import mask_document, mask_uuids


def render(report: Report) -> str:
    """Return the report as one JSON object, UUIDs numbered. `findings` depends on the snapshot alone, byte for byte."""
    document = {
        "schema": SCHEMA,
        "version": report.version,
        "verdict": report.verdict,
        "proof": list(report.proof),
        **_triage(report.triage or Triage()),
        "findings": [_finding(finding) for finding in report.findings],
        "passed": list(report.passed),
        "skipped": [{"check": result.check_id, "reason": result.reason} for result in report.skipped],
        "snapshot": _document(report.snapshot),
        "duration_s": round(report.duration_s, 3),
    }
    # ASCII only, so that no stream's encoding can refuse a character of a machine's text.
    return json.dumps(mask_uuids(mask_document(document)), indent=2, allow_nan=False) + "\n"


def _triage(triage: Triage) -> dict[str, Any]:
    return {
        "understood": list(triage.understood),
        "missing": list(triage.missing),
        "next": [{"command": step.command, "why": step.why, "where": step.where} for step in triage.next_steps],
        "possible": [{"check": c.check, "why": c.why, "confirm": c.confirm} for c in triage.possible],
    }


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "check": finding.check_id,
        "severity": str(finding.severity),
        "subject": finding.subject,
        "summary": finding.summary,
        "evidence": evidence(finding),
        "caused_by": finding.caused_by,
        "remedies": remedies(finding),
        "details": to_json(finding.details),
        **({} if finding.certain else {"certain": False}),
    }


def evidence(finding: Finding) -> list[dict[str, Any]]:
    """Return the evidence as JSON values."""
    return [{"fact": e.fact, "value": to_json(e.value), "source": e.source} for e in finding.evidence]


def remedies(finding: Finding) -> list[dict[str, Any]]:
    """Return the remedies as JSON values, null for no reference."""
    names = ("summary", "commands", "needs", "reference")
    return [{name: to_json(getattr(remedy, name)) for name in names} for remedy in finding.remedies]


def render_snapshot(snapshot: Snapshot) -> str:
    """Return the snapshot as one JSON object, UUIDs numbered."""
    return json.dumps(mask_uuids(mask_document(_document(snapshot))), indent=2, allow_nan=False) + "\n"


def _document(snapshot: Snapshot) -> dict[str, Any]:
    return {"schema": snapshots.SCHEMA, **to_json(snapshot)}
