"""A watched run as JSON: schema gpudoctor/run/1."""

import json
from typing import Any

from gpudoctor.model import Finding
from gpudoctor.model.codec import to_json
from gpudoctor.privacy import mask_document
from gpudoctor.reporters.json_report import evidence, remedies
from gpudoctor.watching.watched import SCHEMA, WatchedRun


def render(run: WatchedRun) -> str:
    """Return the run as one JSON object, with every sample."""
    document = {
        "schema": SCHEMA,
        "command": list(run.command),
        "exit_status": run.exit_status,
        "elapsed_seconds": round(run.elapsed_seconds, 3),
        "every_seconds": run.every_seconds,
        "profile": run.profile,
        "findings": [_finding(finding) for finding in run.findings],
        "watch": to_json(run.watch),
        "gpus": to_json(run.run.gpus),
        "steps": None if run.run.steps is None else to_json(run.run.steps),
        "memory": None if run.run.memory is None else to_json(run.run.memory),
        "inside": run.run.inside,
        "processes": [dict(process) for process in run.processes],
    }
    return json.dumps(mask_document(document), indent=2, allow_nan=False) + "\n"


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "check": finding.check_id,
        "severity": str(finding.severity),
        "summary": finding.summary,
        "share": finding.details["share"],
        "speedup": finding.details["speedup"],
        "place": finding.details["place"],
        "evidence": evidence(finding),
        "remedies": remedies(finding),
        **({} if finding.certain else {"certain": False}),
    }
