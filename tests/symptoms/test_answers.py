"""Rows that are the whole answer: sound, and rendered with what the message names."""

from pathlib import Path

import pytest

from gpudoctor.model import Severity, Symptom
from gpudoctor.model.symptom import LONGEST_QUOTE
from gpudoctor.remedies.fixes import builder_of
from gpudoctor.symptoms.answers import filled, finding_of
from gpudoctor.symptoms.tables import FailureMessage, failure_messages
from tests.own_checks import own_checks

CHECKS = Path(__file__).parent.parent.parent / "checks"
ANSWERS = [(row, answer) for row in failure_messages() for answer in row.answers]
IDS = {check.id for check in own_checks()}


@pytest.mark.parametrize(
    ("template", "names", "text"),
    [
        ("no kernel[ for {gpu}]", {"gpu": "L4"}, "no kernel for L4"),
        ("no kernel[ for {gpu}]", {}, "no kernel"),
        ("{library} is missing", {"library": "libcudnn.so.9"}, "libcudnn.so.9 is missing"),
        ("[{a} and {b}]x", {"a": "1"}, "x"),
        ("list[0]", {}, "list[0]"),
    ],
)
def test_the_parts_that_a_message_does_not_name_are_left_out(template: str, names: dict[str, str], text: str) -> None:
    assert filled(template, names) == text


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("short", "short"),
        ("word " * 40, f"{'word ' * 24}..."),
        ("x" * 200, f"{'x' * LONGEST_QUOTE} ..."),
    ],
)
def test_a_long_message_is_quoted_up_to_a_word(text: str, quoted: str) -> None:
    said = Symptom(kind="any", text=text.strip(), fact="symptoms[0].text")
    assert finding_of({"check": "any", "summary": "{text}"}, said, "").summary == quoted


@pytest.mark.parametrize(("row", "answer"), ANSWERS, ids=[f"{row.id}-{answer['check']}" for row, answer in ANSWERS])
def test_an_answer_names_what_exists(row: FailureMessage, answer: dict[str, object]) -> None:
    assert answer["check"] in IDS
    check = CHECKS / f"{str(answer['check']).replace('-', '_')}.py"
    assert "answers(" in check.read_text(encoding="utf-8"), "the check asks for the answers of rows"
    assert str(answer.get("severity", "error")).upper() in Severity.__members__
    assert set(answer) <= {"check", "severity", "summary", "subject", "certain", "fixes"}
    fixes = answer.get("fixes", [])
    assert isinstance(fixes, list)
    for fix in fixes:
        builder_of(fix["fix"])
