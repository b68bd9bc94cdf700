"""What people paste and write, each with the check that comes first, and texts that only look like it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gpudoctor.engine.runner import run_checks
from gpudoctor.readers.report import read_texts
from tests.own_checks import own_checks

TEXTS = json.loads(Path(__file__).with_name("reports_of_people.json").read_text(encoding="utf-8"))


def first_finding(text: str) -> str:
    """Return the check that comes first, or the verdict if nothing is found."""
    report = run_checks(own_checks(), read_texts([("report.txt", text.encode())]))
    return next((found.check_id for found in report.findings if found.severity.name != "INFO"), report.verdict)


@pytest.mark.parametrize("check", TEXTS["reports"])
def test_the_cause_comes_first(check: str) -> None:
    texts = TEXTS["reports"][check]
    assert {text: first_finding(text) for text in texts} == dict.fromkeys(texts, check)


@pytest.mark.parametrize("check", TEXTS["near_misses"])
def test_a_text_that_only_looks_like_it_has_another_cause(check: str) -> None:
    assert check not in {first_finding(text) for text in TEXTS["near_misses"][check]}
