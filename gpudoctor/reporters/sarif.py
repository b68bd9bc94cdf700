"""The report as SARIF 2.1.0, for code scanning services and editors.

Source: https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html, the sections named below.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from gpudoctor.model import CheckResult, Finding, Outcome, Severity
from gpudoctor.model.codec import to_json
from gpudoctor.model.report import Report
from gpudoctor.privacy import mask_document, mask_secrets, mask_uuids
from gpudoctor.registry import Check
from gpudoctor.reporters.json_report import evidence, remedies
from gpudoctor.reporters.locations import Location, locations
from gpudoctor.reporters.report_words import crashed, headline, plain_text, question_lines
from gpudoctor.untrusted import clean

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}
_REFERENCE = re.compile(r"^Reference: (https://\S+)", re.MULTILINE)
_IGNORED = "ignored"  # how the reason of a check begins that the user leaves out


def render(report: Report, *, checks: Sequence[Check], exit_status: int, root: str) -> str:
    """Return the report as one JSON object, in ASCII, UUIDs numbered.

    exit_status: that the run ends with. root: the project's folder, to which paths are made relative.
    """
    by_id = {check.id: check for check in checks}
    ids = [*by_id, *dict.fromkeys(f.check_id for f in report.findings if f.check_id not in by_id)]
    ids += dict.fromkeys(result.check_id for result in report.results if result.check_id not in ids)
    indices = {check_id: index for index, check_id in enumerate(ids)}
    run = {
        "tool": {"driver": {
            "name": "gpudoctor",
            "version": clean(report.version),
            "rules": [_rule(check_id, by_id.get(check_id)) for check_id in ids],
        }},
        "invocations": [_invocation(report, indices, exit_status)],
        "results": [
            *(_result(finding, indices, report, root) for finding in report.findings),
            *(_suppressed(result, indices) for result in report.results if _is_ignored(result)),
        ],
        "columnKind": "unicodeCodePoints",
    }  # fmt: skip
    document = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(mask_uuids(mask_document(document)), indent=2, allow_nan=False) + "\n"


def _rule(check_id: str, check: Check | None) -> dict[str, Any]:
    if check is None:
        return {"id": clean(check_id)}
    rule = {
        "id": check.id,
        "shortDescription": _message(check.title),
        "fullDescription": _message(" ".join(check.page.partition("\n\n")[2].split()) or check.title),
        "help": _message(check.page),
        # What a check finds has a level of its own: it depends on the machine.
        "defaultConfiguration": {"level": "warning"},
        "properties": {"family": check.family, "tags": [check.family]},
    }
    reference = _REFERENCE.search(check.page)
    return rule | ({"helpUri": reference[1]} if reference else {})


def _invocation(report: Report, indices: Mapping[str, int], exit_status: int) -> dict[str, Any]:
    """Return how the run ended, and which checks failed themselves or could not answer (section 3.20)."""
    skipped = [r for r in report.results if r.outcome is Outcome.SKIPPED and not _is_ignored(r)]
    return {
        "executionSuccessful": report.verdict != "unknown",
        "exitCode": exit_status,
        "exitCodeDescription": headline(report).text,
        "toolExecutionNotifications": [
            *_unknown(report),
            *(_notification(result, indices, "error") for result in crashed(report.results)),
        ],
        "toolConfigurationNotifications": [_notification(result, indices, "note") for result in skipped],
    }


def _unknown(report: Report) -> list[dict[str, Any]]:
    """Return the notification that says why the verdict is unknown, and what to do next; [] for a verdict."""
    if report.verdict != "unknown":
        return []
    return [{"message": _message("\n".join([headline(report).text, *question_lines(report)])), "level": "error"}]


def _notification(result: CheckResult, indices: Mapping[str, int], level: str) -> dict[str, Any]:
    rule = {"id": clean(result.check_id), "index": indices[result.check_id]}
    return {"message": _message(clean(result.reason)), "level": level, "associatedRule": rule}


def _result(finding: Finding, indices: Mapping[str, int], report: Report, root: str) -> dict[str, Any]:
    places = locations(finding, report.snapshot, root)
    return {
        "ruleId": clean(finding.check_id),
        "ruleIndex": indices[finding.check_id],
        "level": _LEVELS[finding.severity],
        "message": _message(plain_text(finding, evidence=False)),
        "locations": [_in_file(place) for place in places] or [_on_machine(finding.subject)],
        "partialFingerprints": _fingerprints(finding),
        "properties": {
            "subject": clean(finding.subject),
            "evidence": evidence(finding),
            "remedies": remedies(finding),
            "caused_by": finding.caused_by,
            "details": to_json(finding.details),
        },
    }


def _message(text: str) -> dict[str, str]:
    """Return a message that is all text: braces doubled, for else they are placeholders (section 3.11.5), and no link.

    The machine's text could contain a link (section 3.11.6).
    """
    return {"text": text.replace("{", "{{").replace("}", "}}").replace("](", "] (")}


def _in_file(place: Location) -> dict[str, Any]:
    physical: dict[str, Any] = {"artifactLocation": {"uri": _uri(mask_secrets(place.path))}}
    if place.line:
        physical["region"] = {"startLine": place.line}
    return {"physicalLocation": physical}


def _uri(path: str) -> str:
    slashes = path.replace("\\", "/")
    return f"file://{quote(slashes)}" if slashes.startswith("/") else quote(slashes, safe="/~")


def _on_machine(subject: str) -> dict[str, Any]:
    """Return the machine as a place.

    It is a file too, of that name: GitHub refuses a whole report in which one result has no file.
    Source: https://github.com/github/codeql-action/issues/1738
    """
    name = f"machine/{clean(subject)}" if subject else "machine"
    return {
        "physicalLocation": {
            "artifactLocation": {"uri": "machine", "description": _message("the machine, not a file")}
        },
        "logicalLocations": [{"name": "machine", "fullyQualifiedName": name, "kind": "resource"}],
    }


def _fingerprints(finding: Finding) -> dict[str, str]:
    """Return what shows whether two runs found the same: the check and its subject.

    GitHub looks at the second name only; without it, it would hash a line of a file (section 3.27.17).
    """
    text = f"{finding.check_id}\n{finding.subject}"
    digest = hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:32]
    return {"checkAndSubject/v1": digest, "primaryLocationLineHash": f"{digest}:1"}


def _is_ignored(result: CheckResult) -> bool:
    return result.outcome is Outcome.SKIPPED and result.reason.startswith(_IGNORED)


def _suppressed(result: CheckResult, indices: Mapping[str, int]) -> dict[str, Any]:
    """Return the result of a check that the user leaves out: open, for nothing was looked at (section 3.27.9).

    A suppression without a status is an accepted one (section 3.35.3).
    """
    return {
        "ruleId": clean(result.check_id),
        "ruleIndex": indices[result.check_id],
        "kind": "open",
        "level": "none",
        "message": _message("not checked"),
        "locations": [_on_machine("")],
        "suppressions": [{"kind": "external", "justification": clean(result.reason)}],
    }
