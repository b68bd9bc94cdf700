"""The report as workflow commands of GitHub Actions: an annotation for each finding.

Source: https://docs.github.com/actions/reference/workflows-and-actions/workflow-commands
"""

from collections.abc import Iterator

from gpudoctor.model import Severity
from gpudoctor.model.report import Report
from gpudoctor.reporters.locations import Location, locations
from gpudoctor.reporters.report_words import crashed, headline, plain_text, question_lines
from gpudoctor.untrusted import clean

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}
_VERDICTS = {"healthy": "notice", "unknown": "error"}  # findings report any other
_MESSAGE = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_PROPERTY = _MESSAGE | str.maketrans({":": "%3A", ",": "%2C"})


def render(report: Report, *, root: str) -> str:
    """Return a command in a line of its own for each finding, each check that crashed, and a verdict without findings.

    The most important come first: GitHub shows ten annotations of a kind for a step.
    root: the project's folder, to which the paths of files are made relative.
    """
    return "".join(f"{line}\n" for line in _lines(report, root))


def _lines(report: Report, root: str) -> Iterator[str]:
    line = headline(report)
    if line.kind in _VERDICTS:
        yield _command(_VERDICTS[line.kind], "gpudoctor", "\n".join([line.text, *question_lines(report)]))
    for finding in report.findings:
        place = next(iter(locations(finding, report.snapshot, root)), None)
        title = f"gpudoctor: {clean(finding.check_id)}"
        yield _command(_COMMANDS[finding.severity], title, plain_text(finding), place)
    for result in crashed(report.results):
        yield _command("warning", f"gpudoctor: {clean(result.check_id)}", clean(result.reason))


def _command(name: str, title: str, message: str, place: Location | None = None) -> str:
    """Return `::name title=...,file=...,line=...::message`, with what has a meaning in it written out."""
    properties = {"title": title}
    if place is not None:
        properties["file"] = clean(place.path, None)
        if place.line:
            properties["line"] = str(place.line)
    listed = ",".join(f"{key}={value.translate(_PROPERTY)}" for key, value in properties.items())
    return f"::{name} {listed}::{message.translate(_MESSAGE)}"
