"""The report as one HTML page that needs nothing else: no network, no font, no script."""

import re
from collections.abc import Iterator, Sequence
from xml.etree.ElementTree import Element

from gpudoctor.model import Evidence, Finding, Remedy, Severity
from gpudoctor.model.report import Report
from gpudoctor.reporters import report_words
from gpudoctor.reporters.html_tables import table
from gpudoctor.reporters.html_tree import Content, element, page
from gpudoctor.reporters.machine import HEADERS, device_row, machine_parts
from gpudoctor.reporters.quantities import duration
from gpudoctor.untrusted import LONGEST_FIX, clean

_ADDRESS = re.compile(r"https://[^\s\"'<>]+")


def render(report: Report) -> str:
    """Return the page, in ASCII."""
    line = report_words.headline(report)
    return page(f"gpudoctor check: {line.text}", "report.css", _body(report, line))


def _body(report: Report, line: report_words.Headline) -> Iterator[Element]:
    yield element(
        "header",
        element("p", " · ".join(machine_parts(report.snapshot))),
        element("h1", line.word, element("small", line.rest.lstrip(":; ")), class_=line.kind.replace(" ", "-")),
    )
    yield element("main", _sections(report))
    yield element("footer", f"gpudoctor {report.version}, {duration(report.duration_s)}.")


def _sections(report: Report) -> Iterator[Element | None]:
    yield from (_problem(problem) for problem in report_words.problems(report.findings))
    yield from (_question(question) for question in report_words.questions(report))
    yield from (finding_section(finding) for finding in report_words.advice(report.findings))
    broken = [element("li", _code(r.check_id), " ", clean(r.reason)) for r in report_words.crashed(report.results)]
    yield element("ul", broken, class_="warnings") if broken else None
    yield _devices(report)
    yield _skipped(report, "Skipped", applicable=True)
    yield _skipped(report, "Not applicable", applicable=False)
    if report.passed:
        yield _details(f"Passed: {len(report.passed)}", element("p", _codes(report.passed)))


def _problem(problem: report_words.Problem) -> Element:
    follows = [element("li", _code(f.check_id), " ", clean(f.summary)) for f in problem.consequences]
    return finding_section(
        problem.finding, [element("h3", "Also caused by this"), element("ul", follows)] if follows else None
    )


def _question(question: report_words.Question) -> Element:
    commands = [
        part
        for command, why in question.commands
        for part in (element("p", why), element("pre", element("code", command), tabindex="0"))
    ]
    lines = element("ul", (element("li", line) for line in question.lines)) if question.lines else None
    return element("section", element("h2", question.heading), lines, commands)


def finding_section(finding: Finding, follows: Content = None) -> Element:
    """Return a finding with its evidence and fixes. follows: what else it explains."""
    severity = str(finding.severity)
    return element(
        "section",
        element(
            "h2",
            element("span", report_words.severity_word(finding.severity), class_="severity"),
            _code(finding.check_id),
            " ",
            clean(finding.subject),
        ),
        element("p", clean(finding.summary), class_="summary"),
        element("ul", (_evidence(item) for item in finding.evidence), class_="evidence") if finding.evidence else None,
        _remedies(finding),
        follows,
        class_=f"finding {severity}",
    )


def _evidence(evidence: Evidence) -> Element:
    first, *others = report_words.evidence_lines(evidence)
    fact, _, value = first.partition(": ")
    return element("li", element("span", fact, class_="fact"), ": ", value, (element("div", line) for line in others))


def _remedies(finding: Finding) -> Iterator[Element]:
    titles = {"fix": "To do" if finding.severity is Severity.INFO else "Fix", "or": "Or"}
    for label, remedy in zip(report_words.labels(finding.remedies), finding.remedies, strict=True):
        yield element("h3", titles[label], ": ", element("span", clean(remedy.summary, LONGEST_FIX)))
        yield from _remedy(remedy)


def _remedy(remedy: Remedy) -> Iterator[Element]:
    if remedy.commands:
        yield element("pre", (element("code", command) for command in remedy.commands), tabindex="0")
    needs = f"Needs {report_words.needs(remedy)}. " if remedy.needs else ""
    if remedy.reference or needs:
        yield element("p", needs, ["See ", _link(clean(remedy.reference))] if remedy.reference else "", class_="note")


def _link(address: str) -> Element:
    """Return a link, or the text if it is not a web address: a link could run a script."""
    if not _ADDRESS.fullmatch(address):
        return element("span", address)
    return element("a", address, href=address, rel="noopener noreferrer")


def _devices(report: Report) -> Element | None:
    devices = report.snapshot.devices or ()
    columns = [(header.replace("\n", " ") or "state", "") for header in HEADERS]
    rows = [(*device_row(device)[:-1], clean(device.error or "") or device_row(device)[-1]) for device in devices]
    shown = table("GPUs of the diagnosed machine.", columns, rows)
    return None if shown is None else element("section", element("h2", "GPUs"), shown)


def _skipped(report: Report, title: str, *, applicable: bool) -> Element | None:
    groups = report_words.skipped_groups(report.results, applicable=applicable)
    if not groups:
        return None
    items = [element("li", reason, ": ", _codes(ids)) for reason, ids in groups]
    return _details(f"{title}: {sum(len(ids) for _, ids in groups)}", element("ul", items))


def _details(summary: str, content: Element) -> Element:
    return element("details", element("summary", summary), content)


def _codes(ids: Sequence[str]) -> Content:
    return [part for check_id in ids for part in (", ", _code(check_id))][1:]


def _code(check_id: str) -> Element:
    return element("code", clean(check_id))
