"""The report as Markdown: an issue's comment, or the summary of a CI job."""

import re
from collections.abc import Iterator, Sequence

from gpudoctor.model import Finding, Remedy
from gpudoctor.model.report import Report
from gpudoctor.reporters import report_words as words
from gpudoctor.reporters.machine import device_lines, machine_line
from gpudoctor.untrusted import LONGEST_FIX, clean

LONGEST = 60_000
"""Characters of a page. GitHub takes 65,536 for a comment."""

_SIGNS = {"error": "❌", "warning": "⚠️", "healthy": "✅", "unknown": "❔", "info": "💡"}
_WIDTH = 100
_RUNS = re.compile("`+")
_MARKUP = re.compile(r"[\\`*_{}\[\]<>#|~&$]")
_BLOCK_START = re.compile(r"\d*(?=[-+=/.):])")  # of a list, a heading, or a command of GitLab
# What GitHub and GitLab turn into links although it is escaped: mentions, numbers of issues, addresses.
_TURNED_INTO_LINKS = re.compile(r"@|#(?=\d)|:(?=//)|www(?=\.)", re.IGNORECASE)
_ZERO_WIDTH_SPACE = "\u200b"
_LINK_TARGET = re.compile(r"https://[A-Za-z0-9._~/?#=&%+,;@:-]+")


def render(report: Report) -> str:
    """Return the page. If it would be longer than `LONGEST`, whole blocks are left out, and it says so."""
    line = words.headline(report)
    page = f"## {_SIGNS[line.kind]} gpudoctor: {escape(line.text)}\n"
    left_out = 0
    for block in _blocks(report):
        if len(page) + len(block) <= LONGEST:
            page += f"\n{block}\n"
        else:
            left_out += 1
    return page + (f"\n{words.number(left_out, 'part')} left out: the page would be too long.\n" if left_out else "")


def _blocks(report: Report) -> Iterator[str]:
    for problem in words.problems(report.findings):
        yield "\n\n".join(_problem(problem))
    yield from ("\n\n".join(_question(question)) for question in words.questions(report))
    yield from ("\n\n".join(_advice(finding)) for finding in words.advice(report.findings))
    for result in words.crashed(report.results):
        yield f"{_SIGNS['warning']} {_code(result.check_id)}: {escape(clean(result.reason))}"
    machine = [*device_lines(report.snapshot, _WIDTH), *machine_line(report.snapshot, _WIDTH)]
    yield f"### Machine\n\n{_fenced(machine)}"
    for title, applicable in (("skipped", True), ("not applicable", False)):
        groups = words.skipped_groups(report.results, applicable=applicable)
        if groups:
            items = [f"- {escape(reason)}: {_names(ids)}" for reason, ids in groups]
            yield _details(f"{sum(len(ids) for _, ids in groups)} {title}", "\n".join(items))
    if report.passed:
        yield _details(f"{len(report.passed)} passed", _names(report.passed))


def _problem(problem: words.Problem) -> Iterator[str]:
    finding = problem.finding
    severity = str(finding.severity)
    yield f"### {_SIGNS[severity]} {severity}: {_code(finding.check_id)} {escape(clean(finding.subject))}".rstrip()
    yield escape(clean(finding.summary))
    evidence = [line for item in finding.evidence for line in _indented(words.evidence_lines(item))]
    if evidence:
        yield _fenced(evidence)
    for label, remedy in zip(words.labels(finding.remedies), finding.remedies, strict=True):
        yield from _remedy(f"**{label.capitalize()}**: {escape(clean(remedy.summary, LONGEST_FIX))}", remedy)
    if problem.consequences:
        follows = (f"- {_code(other.check_id)}: {escape(clean(other.summary))}" for other in problem.consequences)
        yield "\n".join(["Also caused by this:", "", *follows])


def _remedy(first: str, remedy: Remedy) -> Iterator[str]:
    yield first
    if remedy.commands:
        yield _fenced([clean(command, None) for command in remedy.commands], "sh")
    if remedy.needs:
        yield f"Needs {escape(words.needs(remedy))}."
    if remedy.reference:
        yield f"See {_link(clean(remedy.reference))}"


def _question(question: words.Question) -> Iterator[str]:
    yield f"### {escape(question.heading)}"
    if question.lines:
        yield "\n".join(f"- {escape(line)}" for line in question.lines)
    for command, why in question.commands:
        yield escape(why)
        yield _fenced([command], "sh")


def _advice(finding: Finding) -> Iterator[str]:
    yield f"{_SIGNS['info']} {_code(finding.check_id)}: {escape(clean(finding.summary))}"
    for remedy in finding.remedies[:1]:
        yield from _remedy(escape(clean(remedy.summary, LONGEST_FIX)), remedy)


def _indented(lines: Sequence[str]) -> list[str]:
    return [lines[0], *(f"  {line}" for line in lines[1:])]


def _details(summary: str, text: str) -> str:
    return f"<details><summary>{summary}</summary>\n\n{text}\n\n</details>"


def _names(ids: Sequence[str]) -> str:
    return ", ".join(_code(check_id) for check_id in ids)


def _fenced(lines: Sequence[str], language: str = "") -> str:
    """Return a block of code whose fence is longer than any row of backticks in it."""
    text = "\n".join(lines)
    fence = "`" * max(3, _longest_run(text) + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def _code(text: str) -> str:
    """Return `text` as code in a line. Nothing in it is Markdown, HTML or a mention."""
    shown = clean(text)
    ticks = "`" * (_longest_run(shown) + 1)
    space = " " if shown.startswith(("`", " ")) or shown.endswith(("`", " ")) or not shown else ""
    return f"{ticks}{space}{shown}{space}{ticks}"


def _longest_run(text: str) -> int:
    return max((len(run) for run in _RUNS.findall(text)), default=0)


def escape(text: str) -> str:
    """Return cleaned `text` so that it reads as it is: no markup, no HTML, no mention, no link, no issue's number."""
    broken = _TURNED_INTO_LINKS.sub(lambda match: match[0] + _ZERO_WIDTH_SPACE, text.strip())
    escaped = _MARKUP.sub(r"\\\g<0>", broken)
    start = _BLOCK_START.match(escaped)
    return f"{start[0]}\\{escaped[start.end() :]}" if start else escaped


def _link(address: str) -> str:
    """Return a link that shows its own address; text if it is not a plain one."""
    return f"<{address}>" if _LINK_TARGET.fullmatch(address) else escape(address)
