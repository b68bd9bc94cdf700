"""What words add to what the checks found in a report."""

from __future__ import annotations

import pytest

from gpudoctor.conclusions import Facts
from gpudoctor.conclusions.inferred import with_inferred
from gpudoctor.engine.suggestion import DOUBTFUL, suggested, without_doubtful
from gpudoctor.model import Finding, Resemblance, Severity
from gpudoctor.readers.report import read_texts
from gpudoctor.triage.likely_cause import CERTAIN, LEAST_SHARE, LEAST_WORDS, UNCERTAIN
from tests.own_checks import own_checks

CHECKS = own_checks()
WORDS = tuple(f"w{number}" for number in range(LEAST_WORDS))
COMPLAINT, ERROR = "My GPU is not used at all.", "RuntimeError: CUDA error: unspecified launch failure"
WISH = "Please add a button."


class Told(Facts):
    """The facts of a text whose words make the causes as probable as given."""

    def __init__(self, text: str, shares: dict[str, float]) -> None:
        super().__init__(with_inferred(read_texts([("report.txt", text.encode())])))
        self._shares = shares

    def get(self, name: str) -> object:
        if name == "resemblance":
            return Resemblance(shares=dict(sorted(self._shares.items(), key=lambda item: -item[1])))
        return WORDS if name == "words" else super().get(name)


def finding(check_id: str, severity: Severity = Severity.ERROR, *, certain: bool = True) -> Finding:
    return Finding(check_id=check_id, severity=severity, summary="...", facts=("torch.version",), certain=certain)


def name_of(facts: Facts, *findings: Finding) -> str:
    found = suggested(facts, findings, CHECKS)
    return found.check_id if found is not None else ""


@pytest.mark.parametrize(
    ("text", "shares", "named"),
    [
        pytest.param(COMPLAINT, {"driver-too-old": 0.6, "": 0.1}, "driver-too-old", id="a complaint"),
        pytest.param(COMPLAINT, {"driver-too-old": 0.4, "": 0.1}, "", id="one cause of many"),
        pytest.param(COMPLAINT, {"driver-too-old": 0.2, "": 0.8}, "", id="probably nothing is wrong"),
        pytest.param("torch 2.4", {"driver-too-old": 1.0}, "", id="no complaint"),
    ],
)
def test_words_name_a_cause_if_nothing_was_found(text: str, shares: dict[str, float], named: str) -> None:
    assert name_of(Told(text, shares)) == named


def test_that_no_gpu_is_used_is_an_effect_of_what_words_name() -> None:
    facts = Told("torch 2.4", {"driver-too-old": 0.2, "": 0.8})
    assert name_of(facts, finding("torch-cuda-unavailable")) == "driver-too-old"


@pytest.mark.parametrize(("certain", "times"), [(True, CERTAIN), (False, UNCERTAIN)])
def test_words_go_behind_a_finding_that_they_make_much_less_likely(certain: bool, times: float) -> None:
    found = finding("torch-not-installed", certain=certain)
    as_likely = 0.8 / times  # by the words; what was found counts `times` as much
    rarer, likelier = as_likely / 2 - LEAST_SHARE, as_likely * 2
    named = [
        name_of(Told(COMPLAINT, {"wrong-python-environment": 0.8, "torch-not-installed": share}), found)
        for share in (rarer, likelier)
    ]
    assert named == ["wrong-python-environment", ""]


def test_what_is_certain_stays_first_unless_words_name_what_explains_it() -> None:
    facts = Told(COMPLAINT, {"out-of-memory": 1.0})
    assert name_of(facts, finding("torch-not-installed")) == ""
    assert name_of(facts, finding("torch-not-installed", certain=False)) == "out-of-memory"


def test_what_was_found_is_not_suggested_again() -> None:
    facts = Told(COMPLAINT, {"torch-not-installed": 1.0})
    assert name_of(facts, finding("torch-not-installed")) == ""


@pytest.mark.parametrize(
    ("text", "share", "certain", "severity"),
    [
        pytest.param(WISH, DOUBTFUL + 0.01, False, Severity.INFO, id="words of a machine that works"),
        pytest.param(WISH, DOUBTFUL - 0.01, False, Severity.ERROR, id="words that may be of one"),
        pytest.param(WISH, DOUBTFUL + 0.01, True, Severity.ERROR, id="what is certain"),
        pytest.param(ERROR, DOUBTFUL + 0.01, False, Severity.ERROR, id="an error"),
    ],
)
def test_what_is_not_certain_is_advice_if_words_say_that_all_is_well(
    text: str, share: float, certain: bool, severity: Severity
) -> None:
    (found,) = without_doubtful(Told(text, {"": share}), [finding("runs-on-cpu", certain=certain)])
    assert found.severity is severity
