"""A check's result: findings with evidence and remedies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from enum import Enum, IntEnum
from typing import Any

from gpudoctor.model.record import record


class Severity(IntEnum):
    """How much a finding matters. `INFO` never changes the verdict."""

    INFO = 0
    WARNING = 1
    ERROR = 2

    def __str__(self) -> str:
        return self.name.lower()


class Outcome(str, Enum):
    """How one check ended."""

    PASSED = "passed"
    FOUND = "found"
    SKIPPED = "skipped"
    CRASHED = "crashed"


@record
class Evidence:
    """A fact behind a finding, with its value and where it was read."""

    fact: str
    value: Any
    source: str


@record
class Remedy:
    """One way to fix a finding.

    commands: ready to paste, in order, quoted for the shell of the diagnosed machine; the last one verifies.
    needs: what the user must also have or do: "root", "restart" (of the program or service), "reboot".
    """

    summary: str
    commands: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    reference: str | None = None


class Fix:
    """A named fix, which the engine turns into a `Remedy` for the diagnosed machine.

    arguments: values that the facts do not contain: Fix("install-torch", at_most=CudaVersion(12, 8)).
    """

    def __init__(self, name: str, /, **arguments: Any) -> None:
        self.name = name
        self.arguments = arguments

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Fix) and (self.name, self.arguments) == (other.name, other.arguments)

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"Fix({', '.join([repr(self.name), *(f'{key}={value!r}' for key, value in self.arguments.items())])})"


@record
class Finding:
    """A problem that a check found.

    summary: one sentence with both values in it, no line break, no advice.
    facts: dotted paths of its evidence; the runner looks their values up and fills `evidence`. Unknown facts and
        empty paths are left out.
    certain: False if it depends on a conclusion that is only likely; its summary then says "probably".
    fixes: best first; the engine turns them into `remedies` for this machine.
    caused_by: id of the check whose finding explains this one; set by the diagnosis.
    no_usable_gpu: whether it says that no program can use a GPU on this machine: --gpu decides its severity.
    same_fault_as: ids of checks that find the same fault. They and their causes explain this finding, which keeps its
        severity because the user asked for it.
    """

    severity: Severity
    summary: str
    subject: str = ""
    facts: tuple[str, ...] = ()
    certain: bool = True
    fixes: tuple[Fix, ...] = ()
    remedies: tuple[Remedy, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)
    check_id: str = ""
    evidence: tuple[Evidence, ...] = ()
    caused_by: str | None = None
    no_usable_gpu: bool = False
    same_fault_as: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, severity: Severity, subject: str, summary: str, facts: Iterable[str], *fixes: Fix | None, **more: Any
    ) -> Finding:
        """Return a finding with this severity. fixes: None for a fix that does not apply."""
        applicable = tuple(fix for fix in fixes if fix is not None)
        return cls(severity=severity, summary=summary, subject=subject, facts=tuple(facts), fixes=applicable, **more)

    @classmethod
    def error(cls, subject: str, summary: str, facts: Iterable[str], *fixes: Fix | None, **more: Any) -> Finding:
        """Return a finding about something that does not work."""
        return cls.of(Severity.ERROR, subject, summary, facts, *fixes, **more)

    @classmethod
    def warning(cls, subject: str, summary: str, facts: Iterable[str], *fixes: Fix | None, **more: Any) -> Finding:
        """Return a finding about something that may not work, or works badly."""
        return cls.of(Severity.WARNING, subject, summary, facts, *fixes, **more)

    @classmethod
    def advice(cls, subject: str, summary: str, facts: Iterable[str], *fixes: Fix | None, **more: Any) -> Finding:
        """Return a finding that does not change the verdict."""
        return cls.of(Severity.INFO, subject, summary, facts, *fixes, **more)


@record
class CheckResult:
    """How one check ended, with its findings or the reason why it was skipped.

    applicable: False if the check does not apply to this machine.
    """

    check_id: str
    outcome: Outcome
    findings: tuple[Finding, ...] = ()
    reason: str = ""
    applicable: bool = True
