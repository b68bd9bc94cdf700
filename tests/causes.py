"""The causes that a report leads to: what most tests of pasted texts compare."""

from gpudoctor.engine.suggestion import is_guess
from gpudoctor.model import Finding, Severity
from gpudoctor.model.report import Report


def causes_of(report: Report) -> list[Finding]:
    """Return the findings that name a cause, the root cause first: faults, and guesses from people's words."""
    return [finding for finding in report.findings if finding.severity is not Severity.INFO or is_guess(finding)]
