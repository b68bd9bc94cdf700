"""What people paste and write, each with the check that comes first, and texts that only look like it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gpudoctor.engine.runner import run_checks
from gpudoctor.readers.report import read_texts
from tests.causes import causes_of
from tests.own_checks import own_checks

TEXTS = json.loads(Path(__file__).with_name("reports_of_people.json").read_text(encoding="utf-8"))


def first_findings(text: str) -> list[str]:
    """Return the first check, and the one whose cause it is by words alone; the verdict if nothing is found."""
    report = run_checks(own_checks(), read_texts([("report.txt", text.encode())]))
    causes = causes_of(report)
    found = [finding for finding in report.findings if finding in causes or finding.caused_by]
    shown = found[:2] if found and "resemblance.words" in found[0].facts else found[:1]
    return [finding.check_id for finding in shown] or [report.verdict]


@pytest.mark.parametrize("check", TEXTS["reports"])
def test_the_cause_comes_first(check: str) -> None:
    found = {text: first_findings(text) for text in TEXTS["reports"][check]}
    assert {text: checks for text, checks in found.items() if check not in checks} == {}


@pytest.mark.parametrize("check", TEXTS["near_misses"])
def test_a_text_that_only_looks_like_it_has_another_cause(check: str) -> None:
    assert check not in {first_findings(text)[0] for text in TEXTS["near_misses"][check]}
