"""What a report of one run says of all its results."""

import pytest

from gpudoctor.model import CheckResult, Finding, Outcome, Report, Severity, Snapshot

RESULTS = tuple(CheckResult(check_id=outcome.value, outcome=outcome) for outcome in Outcome)


def report(*severities: Severity, proof: tuple[str, ...] = ()) -> Report:
    findings = tuple(Finding.of(severity, "GPU 0", "as found", ("driver.version",)) for severity in severities)
    return Report(version="1.0", snapshot=Snapshot(), results=RESULTS, findings=findings, proof=proof)


def test_what_passed_and_what_could_not_answer() -> None:
    assert report().passed == ("passed",)
    assert [result.check_id for result in report().skipped] == ["skipped", "crashed"]


@pytest.mark.parametrize(
    ("severities", "proof", "severity", "verdict"),
    [
        ((), (), Severity.INFO, "unknown"),
        ((), ("it computed",), Severity.INFO, "healthy"),
        ((Severity.INFO,), ("it computed",), Severity.INFO, "healthy"),
        ((Severity.INFO, Severity.WARNING), ("it computed",), Severity.WARNING, "warning"),
        ((Severity.ERROR, Severity.WARNING), (), Severity.ERROR, "error"),
    ],
)
def test_the_verdict(
    severities: tuple[Severity, ...], proof: tuple[str, ...], severity: Severity, verdict: str
) -> None:
    found = report(*severities, proof=proof)
    assert (found.severity, found.verdict) == (severity, verdict)
