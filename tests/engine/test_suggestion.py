"""What words add to what the checks found in a report."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpudoctor.conclusions import Facts
from gpudoctor.conclusions.inferred import with_inferred
from gpudoctor.configuration.requirements import parse_requirement
from gpudoctor.engine.runner import run_checks
from gpudoctor.engine.suggestion import MENTIONED, agreed, as_advice, confirmed_by_words, suggested
from gpudoctor.model import Concern, Evidence, Finding, Resemblance, Severity
from gpudoctor.readers.report import read_texts
from gpudoctor.triage.likely_cause import CERTAIN, LEAST_SHARE, LEAST_WORDS, UNCERTAIN
from tests.own_checks import own_checks

CHECKS = own_checks()
COMPLAINT = "My GPU is not used at all."


class Told(Facts):
    """The facts of a text whose words make the causes, and that there is no fault now, as probable as given."""

    def __init__(
        self,
        text: str,
        shares: dict[str, float],
        no_fault: float = 0.0,
        *,
        by_person: bool = True,
        known: int = LEAST_WORDS,
    ) -> None:
        super().__init__(with_inferred(read_texts([("report.txt", text.encode())])))
        self._shares, self._no_fault, self._by_person, self._words = shares, no_fault, by_person, known

    def get(self, name: str) -> object:
        if name == "resemblance":
            shares = dict(sorted(self._shares.items(), key=lambda item: -item[1]))
            return Resemblance(shares=shares, known=self._words, by_person=self._by_person)
        return Concern(share=self._no_fault) if name == "concern" else super().get(name)


def finding(check_id: str, severity: Severity = Severity.ERROR, *, certain: bool = True) -> Finding:
    return Finding(check_id=check_id, severity=severity, summary="...", facts=("torch.version",), certain=certain)


def name_of(facts: Facts, *findings: Finding) -> str:
    found = suggested(facts, findings, CHECKS)
    return found.check_id if found is not None else ""


@pytest.mark.parametrize(
    ("shares", "no_fault", "named"),
    [
        pytest.param({"driver-too-old": 0.6}, 0.1, "driver-too-old", id="a fault"),
        pytest.param({"driver-too-old": 0.4}, 0.1, "", id="one cause of many"),
        pytest.param({"driver-too-old": 0.6}, 0.5, "", id="perhaps none now"),
    ],
)
def test_words_name_a_cause_if_nothing_was_found(shares: dict[str, float], no_fault: float, named: str) -> None:
    assert name_of(Told(COMPLAINT, shares, no_fault)) == named


def test_words_name_no_cause_of_a_log_alone() -> None:
    assert name_of(Told(COMPLAINT, {"driver-too-old": 0.99}, by_person=False)) == ""


def test_that_no_gpu_is_used_is_an_effect_of_what_words_name() -> None:
    facts = Told("torch 2.4", {"driver-too-old": 0.6})
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
    ("evidence", "severity"),
    [
        pytest.param(
            [Evidence(fact="symptoms[0].text", value="CUDA error", source="a.txt")], Severity.INFO, id="a message"
        ),
        pytest.param(
            [Evidence(fact="torch.build", value="cpu", source="words in a.txt")], Severity.INFO, id="what a person says"
        ),
        pytest.param(
            [Evidence(fact="torch.build", value="cpu", source="collect_env in a.txt")],
            Severity.ERROR,
            id="a tool's output",
        ),
        pytest.param(
            [
                Evidence(fact="symptoms[0].text", value="CUDA error", source="a.txt"),
                Evidence(fact="driver.version", value="535", source="nvidia-smi in a.txt"),
            ],
            Severity.ERROR,
            id="a message and a tool's output",
        ),
    ],
)
def test_of_an_author_without_a_fault_what_a_text_says_is_advice(evidence: list[Evidence], severity: Severity) -> None:
    (found,) = as_advice([replace(finding("runs-on-cpu"), evidence=tuple(evidence))])
    assert found.severity is severity
    assert found.summary.startswith(MENTIONED) is (severity is Severity.INFO)


@pytest.mark.parametrize(
    ("share", "findings", "agreed_on"),
    [
        (0.95, [finding("runs-on-cpu")], True),
        (0.85, [finding("runs-on-cpu")], False),
        (0.95, [finding("driver-too-old"), finding("runs-on-cpu")], False),
        (0.95, [finding("compute-capability", Severity.INFO), finding("runs-on-cpu")], True),
        (0.95, [], False),
    ],
)
def test_words_that_resemble_the_cause_found_say_that_it_is_there_now(
    share: float, findings: list[Finding], agreed_on: bool
) -> None:
    assert agreed(findings, Resemblance(shares={"runs-on-cpu": share, "": 1 - share})) is agreed_on
    assert not agreed(findings, Resemblance(shares={"": 0.99}))


def test_an_unmet_requirement_stays_an_error_whatever_the_text_reads_like() -> None:
    text = (
        "Feature request: it would be nice if the program said which cards it supports. Everything works on my 3090, "
        "torch 2.4.0+cu121, driver 550.54.14. I can send a pull request. Thanks for the great tool!"
    )
    snapshot = read_texts([("report.txt", text.encode())])
    assert Facts(snapshot).get("concern").no_fault
    report = run_checks(CHECKS, snapshot, requirements=(parse_requirement("driver>=580", "here"),))
    assert [(f.check_id, f.severity) for f in report.findings if f.severity] == [("requirement-unmet", Severity.ERROR)]


def test_what_is_advice_already_stays_as_it_is() -> None:
    known = finding("program-error", Severity.INFO)
    assert as_advice([known]) == (known,)


@pytest.mark.parametrize(
    ("text", "guess"),
    [
        pytest.param("ollama only uses CPU, RTX 3060", "runs-on-cpu", id="the GPU seems unused"),
        pytest.param("GPU memory is not released after I kill the script", "out-of-memory", id="the memory seems used"),
    ],
)
def test_what_working_machines_show_too_is_a_possible_cause(text: str, guess: str) -> None:
    snapshot = read_texts([("report.txt", text.encode())])
    report = run_checks(CHECKS, snapshot)
    assert report.verdict == "unknown"
    assert report.triage is not None
    assert (report.triage.guess, report.triage.possible[0].check) == (guess, guess)
    assert run_checks(CHECKS, snapshot, severities={guess: Severity.ERROR}).verdict == "error"


def test_a_message_confirms_the_guess() -> None:
    text = 'ollama only uses CPU, RTX 3060\nmsg="no compatible GPUs were discovered"'
    assert run_checks(CHECKS, read_texts([("report.txt", text.encode())])).verdict == "error"


@pytest.mark.parametrize(
    ("healthy", "known", "named"),
    [
        pytest.param(0.9, 30, "", id="healthy"),
        pytest.param(0.9, 20, "runs-on-cpu", id="few words"),
        pytest.param(0.1, 30, "runs-on-cpu", id="sick"),
    ],
)
def test_words_of_a_healthy_machine_name_no_cause(healthy: float, known: int, named: str) -> None:
    text = "The application does not see my graphics card"
    assert name_of(Told(text, {"": healthy}, known=known)) == named


def test_a_message_names_its_cause_among_healthy_words() -> None:
    text = "vllm: RuntimeError: Failed to infer device type"
    assert name_of(Told(text, {"": 0.9}, known=30)) == "runs-on-cpu"


@pytest.mark.parametrize(("healthy", "verdict"), [(0.01, "warning"), (0.4, "unknown")])
def test_words_of_sick_machines_confirm_a_guess(healthy: float, verdict: str) -> None:
    facts = Told(COMPLAINT, {"runs-on-cpu": 1 - healthy, "": healthy})
    guess = replace(finding("runs-on-cpu", Severity.INFO, certain=False), facts=("symptoms[0].text",))
    (confirmed,) = confirmed_by_words(facts, (guess,), {})
    assert (confirmed.severity is Severity.WARNING) is (verdict == "warning")
    assert confirmed_by_words(facts, (guess,), {"runs-on-cpu": Severity.INFO}) == (guess,)
