"""The result of a whole run."""

from __future__ import annotations

from gpudoctor.model.finding import CheckResult, Finding, Outcome, Severity
from gpudoctor.model.record import record
from gpudoctor.model.snapshot import Snapshot

SCHEMA = "gpudoctor/report/1"


@record
class Report:
    """What was found on one machine.

    findings: in the order in which to fix them, the root cause first.
    duration_s: seconds that the run took.
    """

    version: str
    snapshot: Snapshot
    results: tuple[CheckResult, ...]
    findings: tuple[Finding, ...]
    duration_s: float = 0.0

    @property
    def passed(self) -> tuple[str, ...]:
        """Ids of the checks that found nothing."""
        return tuple(result.check_id for result in self.results if result.outcome is Outcome.PASSED)

    @property
    def skipped(self) -> tuple[CheckResult, ...]:
        """The checks that could not answer, those that crashed among them; `reason` says why."""
        return tuple(result for result in self.results if result.outcome in (Outcome.SKIPPED, Outcome.CRASHED))

    @property
    def severity(self) -> Severity:
        """The highest severity found."""
        return max((finding.severity for finding in self.findings), default=Severity.INFO)

    @property
    def verdict(self) -> str | None:
        """ "healthy", "warning" or "error"; None where nothing could be checked."""
        if all(result.outcome in (Outcome.SKIPPED, Outcome.CRASHED) for result in self.results):
            return None
        return "healthy" if self.severity is Severity.INFO else str(self.severity)
