"""One run: ask a machine, check what it answers, and say how the run ends."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING

from gpudoctor.conclusions import load_conclusions
from gpudoctor.conclusions import sections_of as sections_read
from gpudoctor.configuration.requirements import UNMET, sections_of
from gpudoctor.engine.verdict import Policy
from gpudoctor.errors import EXIT_FINDINGS, EXIT_HEALTHY, EXIT_NO_VERDICT
from gpudoctor.model import Outcome, Report, Severity
from gpudoctor.model.record import record
from gpudoctor.model.requirement import MachineRequirement
from gpudoctor.probes.host import Host

if TYPE_CHECKING:
    from gpudoctor.registry import Check

ON_COMMAND_LINE = "ignored on the command line"
FOR_FIXES = {"system", "python", "driver", "devices", "torch", "environment"}
"""What the commands of fixes depend on, whatever the checks read."""


@record
class Rules:
    """The rules of a run, in addition to which checks it runs.

    requirements: what the user asks of the machine; each is judged, whatever checks are selected.
    severities: check id → severity that its findings have.
    plugins: whether installed plugins and the folder's are loaded. folder: with further checks.
    gpu: what it means that no GPU can be used: "auto", "required" or "optional".
    """

    requirements: tuple[MachineRequirement, ...] = ()
    severities: Mapping[str, Severity] = field(default_factory=dict)
    plugins: bool = True
    folder: str | None = None
    gpu: str = "auto"

    def checks(self) -> tuple[Check, ...]:
        """Load the checks to choose from."""
        from gpudoctor.engine.catalog import load_checks

        return load_checks(self.folder, plugins=self.plugins)


def check_host(
    host: Host, names: Iterable[str] = (), ignored: Iterable[str] | Mapping[str, str] = (), rules: Rules | None = None
) -> Report:
    """Return the report on `host`.

    names: ids or families of the checks to run, all of them if there is none.
    ignored: those to leave out, with a reason for each if it is a mapping.

    Raises:
        UsageError: a name is neither an id nor a family.
    """
    began = time.monotonic()
    rules = rules or Rules()
    some = names or ignored
    report = _check_some(host, tuple(names), _reasons(ignored), rules) if some else _check_all(host, rules)
    return replace(report, duration_s=time.monotonic() - began)


def check_files(
    files: Sequence[str],
    names: Iterable[str] = (),
    ignored: Iterable[str] | Mapping[str, str] = (),
    rules: Rules | None = None,
) -> Report:
    """Return the report on the machine that the texts in `files` describe; "-" is standard input.

    names, ignored: as for `check_host`.

    Raises:
        UsageError: a name is neither an id nor a family, or a file contains no text that can be read.
    """
    from gpudoctor.engine.runner import run_checks
    from gpudoctor.readers.report import read_files

    began = time.monotonic()
    rules = rules or Rules()
    checks = rules.checks()
    chosen = _chosen(checks, tuple(names), rules)
    left_out = _left_out(checks, _reasons(ignored), rules)
    causes = _causes(checks, chosen, left_out, rules)
    policy = Policy(selected=bool(names), causes=causes)
    report = run_checks(chosen, read_files(files), left_out, rules.requirements, rules.severities, policy)
    return replace(report, duration_s=time.monotonic() - began)


def _check_all(host: Host, rules: Rules) -> Report:
    """Ask the machine first, and load the checks with all that they need while it answers: both take a while."""
    from gpudoctor.probes.questions import questions

    wait = host.ask(questions(host.setting))
    from gpudoctor.engine.runner import run_checks
    from gpudoctor.probes.snapshot import assemble

    checks = rules.checks()
    load_conclusions()
    snapshot = assemble(wait(), host)
    return run_checks(checks, snapshot, None, rules.requirements, rules.severities, Policy(gpu=rules.gpu))


def _check_some(host: Host, names: tuple[str, ...], ignored: Mapping[str, str], rules: Rules) -> Report:
    """Load the checks first, and ask only what they need."""
    from gpudoctor.engine.runner import run_checks
    from gpudoctor.probes.snapshot import begin_snapshot

    checks = rules.checks()
    chosen = _chosen(checks, names, rules)
    left_out = _left_out(checks, ignored, rules)
    causes = _causes(checks, chosen, left_out, rules)
    needed = _sections(check for check in (*chosen, *causes) if check.id not in left_out)
    wait = begin_snapshot(host, needed | sections_of(rules.requirements))
    policy = Policy(gpu=rules.gpu, selected=bool(names), causes=causes)
    return run_checks(chosen, wait(), left_out, rules.requirements, rules.severities, policy)


def _chosen(checks: Sequence[Check], names: tuple[str, ...], rules: Rules) -> tuple[Check, ...]:
    """Return the checks to run. What is required is judged, whatever is selected."""
    from gpudoctor.engine.catalog import select

    return select(checks, (*names, UNMET) if names and rules.requirements else names)


def _causes(
    checks: Sequence[Check], chosen: Sequence[Check], left_out: Mapping[str, str], rules: Rules
) -> tuple[Check, ...]:
    """Return the checks that nobody selected and that may find why a requirement is not met."""
    if UNMET in left_out or not rules.requirements:
        return ()
    from gpudoctor.conclusions.requirements.judgement import FAULTS  # most runs require nothing

    faults = {fault for requirement in rules.requirements for fault in FAULTS.get(requirement.name, ())}
    known = {*left_out, *(check.id for check in chosen)}
    return tuple(check for check in checks if check.id in faults - known)


def _reasons(ignored: Iterable[str] | Mapping[str, str]) -> Mapping[str, str]:
    return ignored if isinstance(ignored, Mapping) else dict.fromkeys(ignored, ON_COMMAND_LINE)


def _left_out(checks: Sequence[Check], ignored: Mapping[str, str], rules: Rules) -> dict[str, str]:
    """Return the checks that are not run, and why. What is required is judged unless that is ignored by its own id."""
    from gpudoctor.engine.catalog import named

    return {
        check.id: reason
        for name, reason in ignored.items()
        for check in named(checks, name)
        if check.id != UNMET or name == UNMET or not rules.requirements
    }


def _sections(checks: Iterable[Check]) -> set[str]:
    named = {name for check in checks for name in (*check.sections, *check.optional)}
    return sections_read(named) | FOR_FIXES


def exit_status(report: Report, fail_on: str) -> int:
    """Return the exit status of a run in which findings at or above `fail_on` ("error", "warning") are a failure.

    fail_on: "never" makes none a failure. An unmet requirement is always a failure. If gpudoctor could not judge the
    requirements, there is no verdict.
    """
    if any(finding.check_id == UNMET for finding in report.findings):
        return EXIT_FINDINGS
    if report.verdict == "unknown" or any(r.check_id == UNMET and r.outcome is Outcome.CRASHED for r in report.results):
        return EXIT_NO_VERDICT
    failed = fail_on != "never" and report.findings and report.severity >= Severity[fail_on.upper()]
    return EXIT_FINDINGS if failed else EXIT_HEALTHY
