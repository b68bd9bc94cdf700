"""The report in the words that several formats share: the verdict, what follows from what, what was not checked."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from gpudoctor.model import CheckResult, Evidence, Finding, NextStep, Outcome, Remedy, Severity
from gpudoctor.model.record import record
from gpudoctor.model.report import Report
from gpudoctor.reporters.labels import label
from gpudoctor.reporters.text import readable
from gpudoctor.untrusted import LONGEST_FIX, clean

_LINES_SHOWN = 4
_UNKNOWN = re.compile(r"(\S+)(?: is unknown|: not-run \(not in the report\)|: not known)")
_NEEDS = {"root": "root", "restart": "a restart of the program", "reboot": "a reboot"}


@record
class Headline:
    """The verdict in one line: `word` says it, `rest` continues. kind: "error", "warning", "healthy" or "unknown"."""

    kind: str
    word: str
    rest: str

    @property
    def text(self) -> str:
        """Both parts."""
        return self.word + self.rest


@record
class Problem:
    """A root cause, and what follows from it."""

    finding: Finding
    consequences: tuple[Finding, ...]


def headline(report: Report) -> Headline:
    """Return the verdict with what proves it, or with the finding to fix first."""
    verdict = report.verdict
    if verdict == "unknown":
        asked = "no problem found, but nothing proves that the GPU works"
        if report.triage is not None and report.triage.answer:
            asked = "the report shows an error of the program itself, and none of the machine"
        elif report.triage is not None and report.triage.guess:
            asked = f"probably {report.triage.guess}, but no output of a program confirms it"
        elif report.triage is not None and report.triage.works:
            asked = "the report shows that the GPU is seen or used, and something that gpudoctor cannot explain"
        elif crashed(report.results):
            asked = f"{number(len(crashed(report.results)), 'check')} crashed"
        elif not report.passed:
            asked = "too little is known for a verdict" if report.results else "no check ran"
        return Headline(kind=verdict, word=verdict, rest=f": {asked}")
    if verdict == "healthy":
        return Headline(kind=verdict, word=verdict, rest=f": {clean('; '.join(report.proof))}")
    amounts = Counter(finding.severity for finding in report.findings)
    problems = [number(amounts[s], str(s)) for s in (Severity.ERROR, Severity.WARNING) if amounts[s]]
    several = amounts[Severity.ERROR] + amounts[Severity.WARNING] > 1
    first = clean(next(f.check_id for f in report.findings if f.severity is not Severity.INFO))
    return Headline(kind=verdict, word=", ".join(problems), rest=f"; fix {first} first" if several else f": {first}")


@record
class Question:
    """A part of an unknown verdict: a heading with lines, or with commands and why to run each."""

    heading: str
    lines: tuple[str, ...] = ()
    commands: tuple[tuple[str, str], ...] = ()


def questions(report: Report) -> list[Question]:
    """Return what was understood, what is missing, the possible causes and what to run next; [] for a verdict."""
    triage = report.triage
    if triage is None:
        return []
    found = [
        Question(heading="Understood", lines=tuple(map(clean, triage.understood))),
        Question(heading="Missing for a verdict", lines=tuple(map(clean, triage.missing))),
        Question(
            heading="Possible causes, most frequent first",
            lines=tuple(clean(f"{cause.check}: {cause.why} Check: {cause.confirm}") for cause in triage.possible),
        ),
        Question(
            heading="Next: run this, then paste the output into gpudoctor check --from -",
            commands=tuple((clean(step.command, None), _reason(step)) for step in triage.next_steps),
        ),
    ]
    return [question for question in found if question.lines or question.commands]


def question_lines(report: Report) -> list[str]:
    """Return the parts of an unknown verdict in plain lines: for a log, and for a program that shows text as it is."""
    lines: list[str] = []
    for question in questions(report):
        lines += [f"{question.heading}:", *(f"  {line}" for line in question.lines)]
        lines += [line for command, why in question.commands for line in (f"    {command}", f"  {why}")]
    return lines


def _reason(step: NextStep) -> str:
    """Return why to run the command, and where."""
    return clean(f"{step.why} Run it {step.where}." if step.where else step.why)


def number(amount: int, noun: str) -> str:
    """Return the amount with its noun: "1 check", "3 checks"."""
    return f"{amount} {noun}{'' if amount == 1 else 's'}"


def severity_word(severity: Severity) -> str:
    """Return the severity as a screen names it."""
    return "advice" if severity is Severity.INFO else str(severity)


def problems(findings: Iterable[Finding]) -> list[Problem]:
    """Return the root causes that change the verdict, or that something follows from which does."""
    groups = _by_root(findings)
    return [Problem(finding=group[0], consequences=tuple(group[1:])) for group in groups if _matters(group)]


def answers(report: Report) -> list[Finding]:
    """Return the advice that explains every failure in a report; [] if the verdict is known."""
    answer = report.triage.answer if report.triage is not None else ""
    return [finding for finding in report.findings if finding.check_id == answer]


def advice(findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings that change no verdict, and from which nothing follows that does."""
    return [group[0] for group in _by_root(findings) if not _matters(group)]


def _by_root(findings: Iterable[Finding]) -> list[list[Finding]]:
    groups: list[list[Finding]] = []
    for finding in findings:
        if finding.caused_by is not None and groups:
            groups[-1].append(finding)
        else:
            groups.append([finding])
    return groups


def _matters(group: Sequence[Finding]) -> bool:
    """Return whether the root cause or a consequence changes the verdict; the user may have chosen a lower severity."""
    return any(finding.severity is not Severity.INFO for finding in group) or group[0].caused_by is not None


def evidence_lines(evidence: Evidence, *, path: bool = False) -> list[str]:
    """Return one fact with its value and where it was read; of a text of many lines, the first ones.

    path: whether to show the path of the fact too.
    """
    value = label(evidence.value) if evidence.fact.endswith("].fact") else evidence.value
    first, *others = readable(evidence.fact, value)
    section = evidence.fact.partition(".")[0].partition("[")[0]
    source = f" ({clean(evidence.source)})" if evidence.source not in ("", section) else ""
    left_out = len(others) - _LINES_SHOWN + 1
    more = [f"and {left_out} more lines"] if left_out > 0 else []
    name = f"{label(evidence.fact)} [{clean(evidence.fact)}]" if path else label(evidence.fact)
    return [f"{name}: {first}{source}", *others[: _LINES_SHOWN - 1], *more]


def needs(remedy: Remedy) -> str:
    """Return what a remedy needs in addition to its commands, "" if it needs nothing."""
    return " and ".join(_NEEDS.get(need, clean(need)) for need in remedy.needs)


def crashed(results: Iterable[CheckResult]) -> list[CheckResult]:
    """Return the checks that failed themselves."""
    return [result for result in results if result.outcome is Outcome.CRASHED]


def skipped_groups(results: Iterable[CheckResult], *, applicable: bool) -> list[tuple[str, list[str]]]:
    """Return each reason for not answering with the ids of its checks, the commonest reason first.

    applicable: whether to return the checks that could not answer, or those whose question does not arise here.
    """
    groups: dict[str, list[str]] = {}
    for result in results:
        if result.outcome is Outcome.SKIPPED and result.applicable is applicable:
            fact = unknown_fact(result.reason)
            groups.setdefault(f"not known ({label(fact)})" if fact else clean(result.reason), []).append(
                result.check_id
            )
    return sorted(groups.items(), key=lambda group: -len(group[1]))


def unknown_fact(reason: str) -> str:
    """Return the path of the fact or section that a check was skipped for, "" for another reason."""
    found = _UNKNOWN.fullmatch(reason)
    return clean(found[1]) if found else ""


def plain_text(finding: Finding, *, evidence: bool = True) -> str:
    """Return the finding in plain lines: for a log, and for a program that shows text as it is."""
    lines = [clean(finding.summary)]
    if finding.caused_by is not None:  # its own remedies would fix nothing
        return f"{lines[0]}\nfollows from {clean(finding.caused_by)}"
    for item in finding.evidence if evidence else ():
        first, *others = evidence_lines(item)
        lines += [f"  {first}", *(f"    {line}" for line in others)]
    for word, remedy in zip(labels(finding.remedies), finding.remedies, strict=True):
        lines += remedy_lines(word, remedy)
    return "\n".join(lines)


def remedy_lines(label: str, remedy: Remedy) -> list[str]:
    """Return a remedy in plain lines, each command whole on one of its own."""
    lines = [
        f"{label}: {clean(remedy.summary, LONGEST_FIX)}",
        *(f"  {clean(command, None)}" for command in remedy.commands),
    ]
    if remedy.needs:
        lines.append(f"  needs {needs(remedy)}")
    if remedy.reference:
        lines.append(f"  see {clean(remedy.reference)}")
    return lines


def labels(remedies: Sequence[Remedy]) -> list[str]:
    """Return the label of each remedy: "fix" before the best one, "or" before the others."""
    return ["fix", *("or" for _ in remedies[1:])] if remedies else []
