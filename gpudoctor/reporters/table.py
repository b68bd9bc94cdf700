"""The report as a person reads it in a terminal: the verdict, what to fix in which order, and what was not checked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import count

from gpudoctor.model import CheckResult, Evidence, Finding, Outcome, Remedy, Severity
from gpudoctor.model.report import Report
from gpudoctor.reporters.machine import device_lines, machine_line
from gpudoctor.reporters.terminal import NARROWEST, clean, paint
from gpudoctor.reporters.text import readable, wrap

_EVIDENCE_SHOWN = 8
_LINES_SHOWN = 4
_NAMES_SHOWN = 3
_UNKNOWN = " is unknown"  # how the reason for a single unknown fact ends
_NOT_TOLD = (": not-run (not in the report)", ": not known")  # how it ends for a section
_NEEDS = {"root": "root", "restart": "a restart of the program", "reboot": "a reboot"}


def render(report: Report, *, color: bool, width: int) -> str:
    """Return the report as text for a screen of `width` columns. Commands are never wrapped."""
    width = max(width, NARROWEST)
    blocks = [
        _verdict(report, color, width),
        *_findings(report.findings, color, width),
        _advice(report.findings, color, width),
        _passed(report, width),
        _crashed(report.results, width),
        _skipped(report.results, width),
        _not_applicable(report.results, width),
        device_lines(report.snapshot, width),
        machine_line(report.snapshot, width),
    ]
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _verdict(report: Report, color: bool, width: int) -> list[str]:
    verdict = report.verdict
    if verdict is None:
        asked = f"none of {len(report.results)} checks could answer" if report.results else "no check was run"
        return _painted("no verdict", f": {asked}", "warning", color, width)
    if verdict == "healthy":
        amount = sum(result.applicable for result in report.skipped)
        skipped = f", {amount} skipped" if amount else ""
        return _painted("healthy", f": {_number(len(report.passed), 'check')} passed{skipped}", verdict, color, width)
    amounts = Counter(finding.severity for finding in report.findings)
    problems = [_number(amounts[s], str(s)) for s in (Severity.ERROR, Severity.WARNING) if amounts[s]]
    several = amounts[Severity.ERROR] + amounts[Severity.WARNING] > 1
    first = report.findings[0].check_id
    return _painted(", ".join(problems), f"; fix {first} first" if several else f": {first}", verdict, color, width)


def _painted(word: str, rest: str, kind: str, color: bool, width: int) -> list[str]:
    """Return `word` in the colour of `kind` and `rest` after it, wrapped as one text."""
    first, *following = wrap(word + rest, width, "", "  ")
    return [paint(first[: len(word)], kind, color=color) + first[len(word) :], *following]


def _number(amount: int, noun: str) -> str:
    return f"{amount} {noun}{'' if amount == 1 else 's'}"


def _findings(findings: Sequence[Finding], color: bool, width: int) -> Iterator[list[str]]:
    """Yield a block for each problem, with what follows from it."""
    block: list[str] = []
    for finding in findings:
        if finding.caused_by is not None:
            follows = f"follows from it: {finding.check_id}: {clean(finding.summary)}"
            block += wrap(follows, width, "  ", "    ")
        elif finding.severity is not Severity.INFO:
            if block:
                yield block
            block = list(_finding(finding, color, width))
    if block:
        yield block


def _finding(finding: Finding, color: bool, width: int) -> Iterator[str]:
    severity = str(finding.severity)
    title = f"  {finding.check_id}  {clean(finding.subject)}".rstrip()
    yield from _painted(severity, title, severity, color, width)
    yield from wrap(clean(finding.summary), width, "  ")
    for evidence in finding.evidence[:_EVIDENCE_SHOWN]:
        yield from _evidence(evidence, width)
    if len(finding.evidence) > _EVIDENCE_SHOWN:
        yield f"    and {len(finding.evidence) - _EVIDENCE_SHOWN} more facts"
    for remedy, label in zip(finding.remedies, ("fix", *("or" for _ in finding.remedies)), strict=False):
        yield from _remedy(remedy, label, width)


def _evidence(evidence: Evidence, width: int) -> Iterator[str]:
    """Yield one fact with its value and where it was read; of a text of many lines, the first ones."""
    value, *others = readable(evidence.fact, evidence.value)
    source = (
        f" ({clean(evidence.source)})"
        if evidence.source not in ("", evidence.fact.partition(".")[0].partition("[")[0])
        else ""
    )
    yield from wrap(f"{clean(evidence.fact)} = {value}{source}", width, "    ", "      ")
    for line in others[: _LINES_SHOWN - 1]:
        yield from wrap(line, width, "      ")
    if len(others) >= _LINES_SHOWN:
        yield f"      and {len(others) - _LINES_SHOWN + 1} more lines"


def _remedy(remedy: Remedy, label: str, width: int) -> Iterator[str]:
    yield from wrap(f"{label}: {clean(remedy.summary)}", width, "  ", "    ")
    yield from _commands(remedy)
    if remedy.needs:
        needs = " and ".join(_NEEDS.get(need, clean(need)) for need in remedy.needs)
        yield from wrap(f"needs {needs}", width, "    ")
    if remedy.reference:
        yield f"    see {clean(remedy.reference)}"


def _commands(remedy: Remedy) -> Iterator[str]:
    """Yield each command whole on a line of its own: a wrapped or cut one could not be copied."""
    for number, command in zip(count(1), remedy.commands, strict=False):
        yield f"    {number}. {clean(command, limit=None)}"


def _advice(findings: Sequence[Finding], color: bool, width: int) -> list[str]:
    lines = []
    for finding in findings:
        if finding.severity is Severity.INFO and finding.caused_by is None:
            lines += _painted("info", f"  {finding.check_id}: {clean(finding.summary)}", "info", color, width)
            for remedy in finding.remedies[:1]:
                lines += list(_commands(remedy)) or wrap(clean(remedy.summary), width, "  ")
    return lines


def _passed(report: Report, width: int) -> list[str]:
    if not report.passed:
        return []
    return wrap(f"passed {len(report.passed)}: {', '.join(report.passed)}", width, "", "  ")


def _crashed(results: Sequence[CheckResult], width: int) -> list[str]:
    crashed = [result for result in results if result.outcome is Outcome.CRASHED]
    return [line for r in crashed for line in wrap(f"{r.check_id} {clean(r.reason)}", width, "", "  ")]


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
    groups: dict[str, list[str]] = {}
    for result in results:
        if result.outcome is Outcome.SKIPPED and not result.applicable:
            groups.setdefault(clean(result.reason), []).append(result.check_id)
    if not groups:
        return []
    lines = [f"not applicable {sum(len(ids) for ids in groups.values())}:"]
    several = [(reason, ids) for reason, ids in groups.items() if len(ids) > 1]
    single = [ids[0] for ids in groups.values() if len(ids) == 1]
    for reason, ids in sorted(several, key=lambda group: -len(group[1])):
        lines += wrap(f"{reason}: {_names(ids)}", width, "  ", "    ")
    if single:
        lines += wrap(f"for one reason each (see --format json): {_names(single)}", width, "  ", "    ")
    return lines


def _names(ids: Sequence[str]) -> str:
    shown = ids if len(ids) <= _NAMES_SHOWN else [*ids[: _NAMES_SHOWN - 1], f"{len(ids) - _NAMES_SHOWN + 1} more"]
    return ", ".join(shown)
