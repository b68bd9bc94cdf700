"""The report as JUnit XML: a test case for each check, as GitLab, Jenkins and other CI services read it."""

from collections.abc import Mapping, Sequence
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from gpudoctor.model import CheckResult, Finding, Outcome, Severity
from gpudoctor.model.report import Report
from gpudoctor.registry import Check
from gpudoctor.reporters.machine import device_lines, machine_parts
from gpudoctor.reporters.report_words import headline, plain_text, question_lines
from gpudoctor.untrusted import clean

_NO_FAMILY = "gpudoctor"  # of a finding that no registered check gives
_WIDTH = 100


def render(report: Report, *, checks: Sequence[Check], fail_on: str) -> str:
    """Return the report as an XML document, in ASCII.

    An error is a failure; a warning is one if `fail_on` is "warning", and otherwise, like information, the output of a
    test that passed. A check that crashed is an error of its own, one that could not answer is skipped. An unknown
    verdict is an error of a test case "verdict": each check passed or was skipped, and the job must not continue.
    """
    families = {check.id: check.family for check in checks}
    cases = [_case(result, report, families, fail_on) for result in _results(report)]
    if report.verdict == "unknown":
        cases.insert(0, _unknown(report))
    tags = {"failures": "failure", "errors": "error", "skipped": "skipped"}
    counts = {name: str(sum(case.find(tag) is not None for case in cases)) for name, tag in tags.items()}
    totals = {"name": "gpudoctor", "tests": str(len(cases)), **counts, "time": f"{report.duration_s:.3f}"}
    root = Element("testsuites", totals)
    suite = SubElement(root, "testsuite", totals)
    suite.append(_properties(report))
    suite.extend(cases)
    indent(root)
    text: str = tostring(root, encoding="us-ascii", xml_declaration=True).decode("ascii")
    return text + "\n"


def _results(report: Report) -> list[CheckResult]:
    """Return the results, and one for each finding that is in none."""
    known = {result.check_id for result in report.results}
    others = dict.fromkeys(finding.check_id for finding in report.findings if finding.check_id not in known)
    return [*report.results, *(CheckResult(check_id=check_id, outcome=Outcome.FOUND) for check_id in others)]


def _properties(report: Report) -> Element:
    values = {
        "version": report.version,
        "verdict": headline(report).text,
        "machine": " · ".join(machine_parts(report.snapshot)),
        "devices": "\n".join(device_lines(report.snapshot, _WIDTH)),
    }
    properties = Element("properties")
    properties.extend(Element("property", {"name": name, "value": _xml(value)}) for name, value in values.items())
    return properties


def _case(result: CheckResult, report: Report, families: Mapping[str, str], fail_on: str) -> Element:
    family = families.get(result.check_id, _NO_FAMILY)
    case = Element("testcase", {"classname": _xml(family), "name": _xml(clean(result.check_id))})
    found = [finding for finding in report.findings if finding.check_id == result.check_id]
    least = Severity.WARNING if fail_on == "warning" else Severity.ERROR
    failures = [finding for finding in found if finding.severity >= least]
    if result.outcome is Outcome.CRASHED:
        _add(case, "error", clean(result.reason), clean(result.reason, None), "crashed")
    elif result.outcome is Outcome.SKIPPED:
        SubElement(case, "skipped", {"message": _xml(clean(result.reason))})
    elif failures:
        severity = max(finding.severity for finding in failures)
        _add(case, "failure", _message(failures), _texts(failures), str(severity))
    others = [finding for finding in found if finding not in failures]
    if others:
        SubElement(case, "system-out").text = _xml(_texts(others))
    return case


def _unknown(report: Report) -> Element:
    """Return the test case that says why the verdict is unknown, and what to do next."""
    case = Element("testcase", {"classname": _NO_FAMILY, "name": "verdict"})
    text = headline(report).text
    _add(case, "error", text, "\n".join([text, *question_lines(report)]), report.verdict)
    return case


def _add(case: Element, tag: str, message: str, text: str, kind: str) -> None:
    SubElement(case, tag, {"message": _xml(message), "type": kind}).text = _xml(text)


def _message(findings: Sequence[Finding]) -> str:
    """Return the first summary and how many more there are: readers show one failure for a test."""
    more = f" (and {len(findings) - 1} more)" if len(findings) > 1 else ""
    return clean(findings[0].summary) + more


def _texts(findings: Sequence[Finding]) -> str:
    return "\n\n".join(f"{finding.severity}: {plain_text(finding)}" for finding in findings)


def _xml(text: str) -> str:
    """Return `text` with every character but line breaks written out that XML cannot contain.

    Source: https://www.w3.org/TR/xml/#charsets
    """
    return "\n".join(clean(line, None) for line in text.split("\n"))
