"""Checks and a snapshot in, a report out."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from gpudoctor import __version__
from gpudoctor.conclusions import Facts
from gpudoctor.conclusions.inferred import with_inferred
from gpudoctor.engine.diagnosis import diagnose
from gpudoctor.engine.suggestion import EFFECTS, agreed, as_advice, confirmed_by_words, suggested
from gpudoctor.engine.verdict import AUTO, Policy, proof_of, triage
from gpudoctor.model import CONCLUSIONS, CheckResult, Evidence, Finding, Outcome, Severity, Snapshot, look_up
from gpudoctor.model.codec import to_json
from gpudoctor.model.record import fact_of
from gpudoctor.model.report import Report
from gpudoctor.model.requirement import MachineRequirement
from gpudoctor.registry import OF_RUNS, Check, NotApplicable, Skip
from gpudoctor.remedies.fitting import fitted
from gpudoctor.remedies.fixes import remedies_of


def run_checks(
    checks: Sequence[Check],
    snapshot: Snapshot,
    ignored: Mapping[str, str] | None = None,
    requirements: Sequence[MachineRequirement] = (),
    severities: Mapping[str, Severity] | None = None,
    policy: Policy = AUTO,
) -> Report:
    """Return the report of `checks` on `snapshot`.

    ignored: check id → reason; such a check is not run and is shown as skipped with that reason.
    requirements: what the user asks of the machine. severities: check id → severity that its findings have.
    policy: what counts as proof, and what it means that no GPU can be used. Of a pasted report nothing is required.
    """
    ignored = ignored or {}
    if snapshot.run is None and not policy.selected:
        checks = [check for check in checks if check.family != OF_RUNS]
    snapshot = with_inferred(snapshot)
    facts = Facts(snapshot, requirements=tuple(requirements), gpu_policy=policy.gpu)
    results = tuple(
        _skipped(check, ignored[check.id]) if check.id in ignored else run_with(check, facts) for check in checks
    )
    found = [finding for result in results for finding in result.findings]
    faults = {fault for finding in found for fault in finding.same_fault_as}
    others = tuple(
        result for check in policy.causes if check.id in faults and (result := run_with(check, facts)).findings
    )
    found += [finding for result in others for finding in result.findings]
    if facts.get("origin").is_report:
        policy = replace(policy, gpu="auto")
    chosen = {**policy.severities(found), **(severities or {})}
    named = {check.id: check for check in (*checks, *policy.causes)}
    findings = diagnose(found, named, chosen)
    findings, results = _without_bystanders(findings, others), (*results, *_explaining(findings, others))
    proof = proof_of(facts, [result for result in results if result.check_id not in ignored], findings, policy)
    if facts.get("origin").is_report and not proof:
        # Who requires something wants it judged.
        no_fault = facts.get("concern").no_fault and not requirements and not agreed(findings, facts.get("resemblance"))
        guess = None if no_fault else suggested(facts, findings, checks)
        guessing = next((check for check in checks if guess is not None and check.id == guess.check_id), None)
        if no_fault:
            findings = as_advice(findings)
        elif guess and guessing and guessing.id not in ignored:
            guess = _complete(guess, guessing, facts)
            results = tuple(_with(guess, result) if result.check_id == guessing.id else result for result in results)
            unsure = (finding.check_id for finding in findings if not finding.certain)
            named[guessing.id] = replace(guessing, explains=(*guessing.explains, *EFFECTS, *unsure))
            findings = diagnose((guess, *findings), named, chosen)
        if not no_fault:
            findings = confirmed_by_words(facts, findings, chosen)
    report = Report(version=__version__, snapshot=snapshot, results=results, findings=findings, proof=proof)
    return replace(report, triage=triage(facts, findings)) if report.verdict == "unknown" else report


def _with(guess: Finding, result: CheckResult) -> CheckResult:
    """Return the result of a check that found nothing, with what words suggest."""
    return replace(result, outcome=Outcome.FOUND, reason="", findings=(guess, *result.findings))


def _explaining(findings: Sequence[Finding], others: Sequence[CheckResult]) -> tuple[CheckResult, ...]:
    """Return those of the results whose finding explains another one."""
    explaining = {finding.caused_by for finding in findings}
    return tuple(result for result in others if result.check_id in explaining)


def _without_bystanders(findings: Sequence[Finding], others: Sequence[CheckResult]) -> tuple[Finding, ...]:
    """Return the findings without those of `others` that explain none."""
    bystanders = {result.check_id for result in others} - {finding.caused_by for finding in findings}
    return tuple(finding for finding in findings if finding.check_id not in bystanders)


def run_one(check: Check, snapshot: Snapshot, requirements: Sequence[MachineRequirement] = ()) -> CheckResult:
    """Return how `check` ends on `snapshot`. A check that raises crashes alone, and never ends the run."""
    return run_with(check, Facts(snapshot, requirements=tuple(requirements)))


def run_with(check: Check, facts: Facts) -> CheckResult:
    """Return how `check` ends on these facts."""
    if check.broken:
        return CheckResult(check_id=check.id, outcome=Outcome.CRASHED, reason=check.broken)
    findings: list[Finding] = []
    try:
        for section in check.sections:
            if facts.get(section) is None:
                return _without(section, check, facts.snapshot)
        findings.extend(_complete(finding, check, facts) for finding in facts.call(check.function))
    except Skip as skip:
        if not findings:  # what was found before stays
            return _skipped(check, str(skip), applicable=not isinstance(skip, NotApplicable))
    except Exception as error:
        reason = f"crashed, which is a bug in {check.origin}: {type(error).__name__}: {error}"
        return CheckResult(check_id=check.id, outcome=Outcome.CRASHED, reason=reason)
    return CheckResult(
        check_id=check.id, outcome=Outcome.FOUND if findings else Outcome.PASSED, findings=tuple(findings)
    )


def _skipped(check: Check, reason: str, *, applicable: bool = True) -> CheckResult:
    return CheckResult(check_id=check.id, outcome=Outcome.SKIPPED, reason=reason, applicable=applicable)


def _without(section: str, check: Check, snapshot: Snapshot) -> CheckResult:
    """Return the result of a check that needs a section that is unknown, or that this machine does not have."""
    report = snapshot.report(section)
    if section == OF_RUNS:
        return _skipped(check, "only gpudoctor run finds it", applicable=False)
    if report is None:
        return _skipped(check, f"{section}: not known")
    first_line = report.detail.strip().partition("\n")[0]
    if report.state == "absent":
        return _skipped(check, first_line or f"there is no {section}", applicable=False)
    return _skipped(check, f"{section}: {report.state}" + (f" ({first_line})" if first_line else ""))


def _complete(finding: Finding, check: Check, facts: Facts) -> Finding:
    """Return the finding with its evidence, the facts that are known, and its fixes as remedies for this machine.

    A remedy that several fixes lead to is there once.
    """
    named = filter(None, dict.fromkeys(finding.facts))
    in_known_sections = (fact for fact in named if facts.get(re.split(r"\W", fact)[0]) is not None)
    evidence = tuple(item for fact in in_known_sections if (item := _evidence(fact, facts)).value is not None)
    known = tuple(item.fact for item in evidence)
    remedies = facts.call(fitted, remedies=(*finding.remedies, *remedies_of(finding.fixes, facts)))
    return replace(finding, check_id=check.id, facts=known, evidence=evidence, remedies=tuple(dict.fromkeys(remedies)))


def _evidence(fact: str, facts: Facts) -> Evidence:
    section, _, field = fact.partition(".")
    if section in CONCLUSIONS:
        concluded = facts.get(section)
        reason = getattr(concluded, "likely", {}).get(field, "")
        source = f"concluded: {reason}" if reason else "concluded"
        return Evidence(fact=fact, value=to_json(getattr(concluded, field)), source=source)
    return Evidence(fact=fact, value=to_json(look_up(facts.snapshot, fact)), source=_source(fact, facts.snapshot))


def _source(fact: str, snapshot: Snapshot) -> str:
    """Return where `fact` was read: its own source on a live machine, else the text that gave it."""
    section, *steps = fact.replace("[", ".").split(".")
    field = next((step for step in steps if not step.endswith("]")), "")
    value = getattr(snapshot, section)
    if section == "symptoms":
        return str(look_up(snapshot, f"{fact.partition('.')[0]}.source"))
    given = [report for report in snapshot.reports if report.section == section and report.source]
    if given:
        return next((report.source for report in given if field in report.facts), given[0].source)
    owner = type(value[0]) if isinstance(value, tuple) and value else type(value)
    fact_read = fact_of(owner, field)
    return fact_read.source if fact_read and fact_read.source else section
