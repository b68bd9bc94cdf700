import re

import pytest

from gpudoctor.engine.catalog import load_checks
from gpudoctor.model import Finding, Remedy, Report, Severity
from gpudoctor.reporters.formats import FORMATS, Run, render
from tests.reporters import reports

RUN = Run(fail_on="error", exit_status=1)


@pytest.mark.parametrize("report", reports.ALL.values(), ids=reports.ALL)
@pytest.mark.parametrize("name", FORMATS)
def test_every_format_shows_every_report(name: str, report: Report) -> None:
    text = render(name, report, RUN)
    assert text.endswith("\n")
    ids = [
        finding.check_id for finding in report.findings if finding.check_id.isascii() and "\n" not in finding.check_id
    ]
    assert all(check_id in text for check_id in ids[:3])


@pytest.mark.parametrize("name", FORMATS)
def test_what_gets_published_numbers_the_uuids(name: str) -> None:
    uuid = "GPU-5a0c1f9e-11aa-22bb-33cc-0123456789ab"
    finding = Finding(check_id="x", severity=Severity.ERROR, summary=f"{uuid} is lost")
    text = render(name, reports.report(finding), RUN)
    assert (uuid in text) == (name == "table")


def test_a_run_knows_the_checks() -> None:
    assert RUN.checks == load_checks()


@pytest.mark.parametrize("name", [name for name in FORMATS if name != "github"])
def test_a_long_fix_is_shown_whole(name: str) -> None:
    words = " ".join(f"word{number}" for number in range(120))
    remedy = Remedy(summary=words)
    finding = Finding(check_id="x", severity=Severity.ERROR, summary="broken", remedies=(remedy,))
    text = re.sub(r"\s+", " ", render(name, reports.report(finding), RUN))
    assert "word119" in text
    assert "characters)" not in text
