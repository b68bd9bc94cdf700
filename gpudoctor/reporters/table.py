"""The report as a person reads it in a terminal: the verdict, what to fix in which order, and the machine."""

from collections.abc import Iterator, Sequence
from textwrap import shorten

from gpudoctor.model import CheckResult, Evidence, Finding, Outcome, Remedy
from gpudoctor.model.report import Report
from gpudoctor.reporters import report_words as words
from gpudoctor.reporters.machine import device_lines, gpu_parts, machine_parts
from gpudoctor.reporters.terminal import Screen, paint
from gpudoctor.reporters.text import wrap, wrap_painted, wrap_parts
from gpudoctor.untrusted import LONGEST_FIX, clean

_EVIDENCE_SHOWN = 8
_LINES_SHOWN = 4  # of one fact
_ADVICE_LINES = 4
_CONSEQUENCE = 140  # characters of a summary below its cause, which already shows the message


def render(report: Report, *, screen: Screen) -> str:
    """Return the report as text for a screen. Commands are never wrapped. A long report ends with the verdict again."""
    verdict = _verdict(report, screen)
    if screen.verbosity < 0:
        return "\n".join(verdict) + "\n"
    answers = words.answers(report)
    blocks = [
        verdict,
        *_findings(report.findings, screen),
        *(list(_finding(finding, screen)) for finding in answers),
        *_questions(report, screen),
        *_advice([finding for finding in report.findings if finding not in answers], screen),
        _crashed(report.results, screen),
        *_answers(report, screen),
    ]
    text = "\n\n".join("\n".join(block) for block in blocks if block) + "\n"
    return text if text.count("\n") <= screen.height else text + "\n" + "\n".join(verdict) + "\n"


def _verdict(report: Report, screen: Screen) -> list[str]:
    line = words.headline(report)
    kind = "warning" if line.kind == "unknown" else line.kind
    return wrap_painted(line.word, line.rest, kind, screen.color, screen.columns)


def _findings(findings: Sequence[Finding], screen: Screen) -> Iterator[list[str]]:
    """Yield a block for each problem, with what follows from it."""
    for problem in words.problems(findings):
        block = list(_finding(problem.finding, screen))
        for finding in problem.consequences:
            summary = shorten(clean(finding.summary), _CONSEQUENCE, placeholder=" ...")
            follows = f"also caused by this: {finding.check_id}: {summary}"
            block += wrap(follows, screen.columns, "  ", "    ")
        yield block


def _finding(finding: Finding, screen: Screen) -> Iterator[str]:
    severity = str(finding.severity)
    title = f"  {finding.check_id}  {clean(finding.subject)}".rstrip()
    yield from wrap_painted(words.severity_word(finding.severity), title, severity, screen.color, screen.columns)
    yield from wrap(clean(finding.summary), screen.columns, "  ")
    shown = len(finding.evidence) if screen.verbosity > 0 else _EVIDENCE_SHOWN
    for evidence in finding.evidence[:shown]:
        yield from _evidence(evidence, screen)
    if len(finding.evidence) > shown:
        yield f"    and {len(finding.evidence) - shown} more facts (-v shows them)"
    for label, remedy in zip(words.labels(finding.remedies), finding.remedies, strict=True):
        yield from _remedy(remedy, label, screen)


def _evidence(evidence: Evidence, screen: Screen) -> list[str]:
    """Return one fact with its value and where it was read; of a long text the first lines, unless -v."""
    first, *others = words.evidence_lines(evidence, path=screen.verbosity > 0)
    lines = wrap(first, screen.columns, "    ", "      ")
    lines += [line for other in others for line in wrap(other, screen.columns, "      ")]
    return lines if screen.verbosity > 0 or len(lines) <= _LINES_SHOWN else [*lines[:_LINES_SHOWN], "      ..."]


def _remedy(remedy: Remedy, label: str, screen: Screen) -> Iterator[str]:
    """Yield a way to fix it. Its commands are one block that can be copied: each is whole, on a line of its own."""
    needed = f" (needs {words.needs(remedy)})" if remedy.needs else ""
    yield from wrap(f"{label}: {clean(remedy.summary, LONGEST_FIX)}{needed}", screen.columns, "  ", "    ")
    for command in remedy.commands:
        yield f"    {paint(clean(command, limit=None), 'bold', color=screen.color)}"
    if remedy.reference:
        yield f"  see {clean(remedy.reference)}"


def _advice(findings: Sequence[Finding], screen: Screen) -> list[list[str]]:
    """Return what changes no verdict: the names only below a problem, and how to act on it only with -v."""
    given = words.advice(findings)
    if screen.verbosity > 0:
        return [list(_finding(finding, screen)) for finding in given]
    if given and len(given) < len(findings):
        return [wrap(f"advice: {', '.join(f.check_id for f in given)} (-v shows details)", screen.columns, "", "  ")]
    lines: list[str] = []
    for number, finding in enumerate(given):
        text = f"  {finding.check_id}: {clean(finding.summary)}"
        block = wrap_painted("advice", text, "info", screen.color, screen.columns)
        if len(lines) + len(block) > _ADVICE_LINES:
            return [[*lines, f"and {len(given) - number} more (-v shows details)"]]
        lines += block
    return [lines]


def _questions(report: Report, screen: Screen) -> Iterator[list[str]]:
    """Yield a block for each part of an unknown verdict. Commands are never wrapped."""
    for question in words.questions(report):
        block = [f"{question.heading}:"]
        for line in question.lines:
            block += wrap(line, screen.columns, "  ", "    ")
        for command, why in question.commands:
            block += [f"    {paint(command, 'bold', color=screen.color)}", *wrap(why, screen.columns, "  ")]
        yield block


def _answers(report: Report, screen: Screen) -> Iterator[list[str]]:
    """Yield how many checks passed and were skipped, and the machine; with -v which ones, and its devices."""
    passed = list(report.passed)
    skipped = [r for r in report.results if r.outcome is Outcome.SKIPPED and r.applicable]
    others = [r for r in report.results if r.outcome is Outcome.SKIPPED and not r.applicable]
    machine = [*machine_parts(report.snapshot), *gpu_parts(report.snapshot)]
    if screen.verbosity > 0:
        yield wrap(f"passed {len(passed)}: {', '.join(passed)}", screen.columns, "", "  ") if passed else []
        yield _grouped("skipped", skipped, screen, applicable=True)
        yield _grouped("not applicable", others, screen, applicable=False)
        yield device_lines(report.snapshot, screen.columns)
        yield wrap_parts(machine_parts(report.snapshot), " · ", screen.columns)
        return
    amounts = ((len(passed), "passed"), (len(skipped), "skipped"), (len(others), "not applicable"))
    counted = ", ".join(f"{amount} {name}" for amount, name in amounts if amount)
    yield [*([f"{counted} (-v lists them)"] if counted else []), *wrap_parts(machine, " · ", screen.columns)]


def _crashed(results: Sequence[CheckResult], screen: Screen) -> list[str]:
    texts = (f"{result.check_id} {clean(result.reason)}" for result in words.crashed(results))
    return [line for text in texts for line in wrap(text, screen.columns, "", "  ")]


def _grouped(title: str, results: Sequence[CheckResult], screen: Screen, *, applicable: bool) -> list[str]:
    """Return the checks that did not answer, those of one reason together."""
    lines = [f"{title} {len(results)}:"] if results else []
    for reason, ids in words.skipped_groups(results, applicable=applicable):
        lines += wrap(f"{reason}: {', '.join(ids)}", screen.columns, "  ", "    ")
    return lines
