"""The report as a person reads it in a terminal: the verdict, what to fix in which order, and what was not checked."""

from collections.abc import Iterator, Sequence
from itertools import count

from gpudoctor.model import CheckResult, Evidence, Finding, Outcome, Remedy
from gpudoctor.model.report import Report
from gpudoctor.reporters.machine import device_lines, machine_line
from gpudoctor.reporters.report_words import (
    advice,
    crashed,
    evidence_lines,
    headline,
    labels,
    needs,
    problems,
    questions,
    skipped_groups,
)
from gpudoctor.reporters.terminal import NARROWEST
from gpudoctor.reporters.text import wrap, wrap_painted
from gpudoctor.untrusted import clean

_EVIDENCE_SHOWN = 8
_NAMES_SHOWN = 3
_UNKNOWN = " is unknown"  # how the reason for a single unknown fact ends
_NOT_TOLD = (": not-run (not in the report)", ": not known")  # how it ends for a section


def render(report: Report, *, color: bool, width: int) -> str:
    """Return the report as text for a screen of `width` columns. Commands are never wrapped."""
    width = max(width, NARROWEST)
    blocks = [
        _verdict(report, color, width),
        *_findings(report.findings, color, width),
        *_questions(report, width),
        _advice(report.findings, color, width),
        _crashed(report.results, width),
        *_answers(report, width),
        device_lines(report.snapshot, width),
        machine_line(report.snapshot, width),
    ]
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _verdict(report: Report, color: bool, width: int) -> list[str]:
    line = headline(report)
    kind = "warning" if line.kind == "unknown" else line.kind
    return wrap_painted(line.word, line.rest, kind, color, width)


def _findings(findings: Sequence[Finding], color: bool, width: int) -> Iterator[list[str]]:
    """Yield a block for each problem, with what follows from it."""
    for problem in problems(findings):
        block = list(_finding(problem.finding, color, width))
        for finding in problem.consequences:
            follows = f"follows from it: {finding.check_id}: {clean(finding.summary)}"
            block += wrap(follows, width, "  ", "    ")
        yield block


def _finding(finding: Finding, color: bool, width: int) -> Iterator[str]:
    severity = str(finding.severity)
    title = f"  {finding.check_id}  {clean(finding.subject)}".rstrip()
    yield from wrap_painted(severity, title, severity, color, width)
    yield from wrap(clean(finding.summary), width, "  ")
    for evidence in finding.evidence[:_EVIDENCE_SHOWN]:
        yield from _evidence(evidence, width)
    if len(finding.evidence) > _EVIDENCE_SHOWN:
        yield f"    and {len(finding.evidence) - _EVIDENCE_SHOWN} more facts"
    for label, remedy in zip(labels(finding.remedies), finding.remedies, strict=True):
        yield from _remedy(remedy, label, width)


def _evidence(evidence: Evidence, width: int) -> Iterator[str]:
    """Yield one fact with its value and where it was read; of a text of many lines, the first ones."""
    first, *others = evidence_lines(evidence)
    yield from wrap(first, width, "    ", "      ")
    for line in others:
        yield from wrap(line, width, "      ")


def _remedy(remedy: Remedy, label: str, width: int) -> Iterator[str]:
    yield from wrap(f"{label}: {clean(remedy.summary)}", width, "  ", "    ")
    yield from _commands(remedy)
    if remedy.needs:
        yield from wrap(f"needs {needs(remedy)}", width, "    ")
    if remedy.reference:
        yield f"    see {clean(remedy.reference)}"


def _commands(remedy: Remedy) -> Iterator[str]:
    """Yield each command whole on a line of its own: a wrapped or cut one could not be copied."""
    for number, command in zip(count(1), remedy.commands, strict=False):
        yield f"    {number}. {clean(command, limit=None)}"


def _advice(findings: Sequence[Finding], color: bool, width: int) -> list[str]:
    lines = []
    for finding in advice(findings):
        lines += wrap_painted("info", f"  {finding.check_id}: {clean(finding.summary)}", "info", color, width)
        for remedy in finding.remedies[:1]:
            lines += list(_commands(remedy)) or wrap(clean(remedy.summary), width, "  ")
    return lines


def _questions(report: Report, width: int) -> Iterator[list[str]]:
    """Yield a block for each part of an unknown verdict. Commands are never wrapped."""
    for question in questions(report):
        block = [f"{question.heading}:"]
        for line in question.lines:
            block += wrap(line, width, "  ", "    ")
        for command, why in question.commands:
            block += [f"    {command}", *wrap(why, width, "  ")]
        yield block


def _answers(report: Report, width: int) -> list[list[str]]:
    """Return what passed and what was not checked. Without a verdict these names help nobody: the amounts suffice."""
    if report.verdict != "unknown":
        return [_passed(report, width), _skipped(report.results, width), _not_applicable(report.results, width)]
    skipped = [result.applicable for result in report.results if result.outcome is Outcome.SKIPPED]
    asked = f"{sum(skipped)} skipped, {len(skipped) - sum(skipped)} not applicable"
    return [[f"{len(report.passed)} passed, {asked}"]]


def _passed(report: Report, width: int) -> list[str]:
    if not report.passed:
        return []
    return wrap(f"passed {len(report.passed)}: {', '.join(report.passed)}", width, "", "  ")


def _crashed(results: Sequence[CheckResult], width: int) -> list[str]:
    return [line for r in crashed(results) for line in wrap(f"{r.check_id} {clean(r.reason)}", width, "", "  ")]


def _skipped(results: Sequence[CheckResult], width: int) -> list[str]:
    """Return the checks that did not answer, those of one reason together and the commonest reason first."""
    groups: dict[str, list[str]] = {}
    facts: dict[str, None] = {}
    for result in results:
        if result.outcome is Outcome.SKIPPED and result.applicable:
            fact = _unknown_fact(result.reason)
            if fact:
                facts[clean(fact)] = None
            groups.setdefault(_UNKNOWN if fact else clean(result.reason), []).append(result.check_id)
    if not groups:
        return []
    lines = [f"skipped {sum(len(ids) for ids in groups.values())}:"]
    for reason, ids in sorted(groups.items(), key=lambda group: -len(group[1])):
        text = f"unknown {', '.join(facts)}" if reason == _UNKNOWN else reason
        lines += wrap(f"{text}: {_names(ids)}", width, "  ", "    ")
    return lines


def _unknown_fact(reason: str) -> str:
    """Return the fact or section whose being unknown is the reason, "" for another reason."""
    for ending in (_UNKNOWN, *_NOT_TOLD):
        fact = reason.removesuffix(ending)
        if fact != reason and " " not in fact:
            return fact
    return ""


def _not_applicable(results: Sequence[CheckResult], width: int) -> list[str]:
    """Return the checks whose question does not arise here, with the reasons that several of them share."""
    groups = skipped_groups(results, applicable=False)
    if not groups:
        return []
    lines = [f"not applicable {sum(len(ids) for _, ids in groups)}:"]
    several = [(reason, ids) for reason, ids in groups if len(ids) > 1]
    single = [ids[0] for _, ids in groups if len(ids) == 1]
    for reason, ids in several:
        lines += wrap(f"{reason}: {_names(ids)}", width, "  ", "    ")
    if single:
        lines += wrap(f"for one reason each (see --format json): {_names(single)}", width, "  ", "    ")
    return lines


def _names(ids: Sequence[str]) -> str:
    shown = ids if len(ids) <= _NAMES_SHOWN else [*ids[: _NAMES_SHOWN - 1], f"{len(ids) - _NAMES_SHOWN + 1} more"]
    return ", ".join(shown)
