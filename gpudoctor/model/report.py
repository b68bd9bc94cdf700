"""The result of a run."""

from gpudoctor.model.finding import CheckResult, Finding, Outcome, Severity
from gpudoctor.model.record import record
from gpudoctor.model.snapshot import Snapshot

SCHEMA = "gpudoctor/report/1"


@record
class NextStep:
    """A command that shows unknown facts, and where to run it."""

    command: str
    why: str
    where: str = ""


@record
class PossibleCause:
    """A cause that fits the known facts, and the observation that confirms or excludes it."""

    check: str
    why: str
    confirm: str


@record
class Triage:
    """Next steps if nothing was found and nothing proves that the GPU works.

    understood, missing: sentences for the user. next_steps: at most two. possible: at most three, most frequent first.
    answer: id of the check whose advice explains every failure in a report; "" if none does.
    guess: id of the check to which people's words alone lead; "" if they lead to none.
    works: whether a report shows a program that sees or uses the GPU, and also something that nothing explains.
    """

    understood: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    next_steps: tuple[NextStep, ...] = ()
    possible: tuple[PossibleCause, ...] = ()
    answer: str = ""
    guess: str = ""
    works: bool = False


@record
class Report:
    """The findings on one machine.

    findings: in the order in which to fix them, the root cause first.
    proof: sentences about what was verified; empty if something was found or nothing was verified.
    triage: what to do next; None unless the verdict is unknown.
    duration_s: seconds that the run took.
    """

    version: str
    snapshot: Snapshot
    results: tuple[CheckResult, ...]
    findings: tuple[Finding, ...]
    proof: tuple[str, ...] = ()
    triage: Triage | None = None
    duration_s: float = 0.0

    @property
    def passed(self) -> tuple[str, ...]:
        """Ids of the checks that found nothing."""
        return tuple(result.check_id for result in self.results if result.outcome is Outcome.PASSED)

    @property
    def skipped(self) -> tuple[CheckResult, ...]:
        """The checks that could not answer, including crashed ones; `reason` says why."""
        return tuple(result for result in self.results if result.outcome in (Outcome.SKIPPED, Outcome.CRASHED))

    @property
    def severity(self) -> Severity:
        """The highest severity found."""
        return max((finding.severity for finding in self.findings), default=Severity.INFO)

    @property
    def verdict(self) -> str:
        """ "warning" or "error" if something was found, "healthy" with proof, else "unknown"."""
        if self.severity is not Severity.INFO:
            return str(self.severity)
        return "healthy" if self.proof else "unknown"
