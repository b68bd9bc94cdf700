"""Which confirmed reports the words of a report resemble."""

import json
from pathlib import Path

import pytest

from gpudoctor.conclusions.resemblance import resemblance
from gpudoctor.data.tables import load_table
from gpudoctor.readers.vocabulary import known_words
from tests.own_checks import own_checks

TABLE = load_table("word_weights")
REPORTS = json.loads((Path(__file__).parents[1] / "triage" / "words_of_reports.json").read_text(encoding="utf-8"))[
    "reports"
]


def test_without_known_words_nothing_is_likely() -> None:
    assert not resemblance(None).shares
    assert not resemblance(()).shares
    assert not resemblance(("xyzzyplugh",)).shares  # a saved snapshot may contain any word


def test_shares_add_up_to_one_and_the_most_probable_is_first() -> None:
    shares = resemblance(known_words("the container was started without --gpus, docker sees no gpu")).shares
    assert sum(shares.values()) == pytest.approx(1)
    assert [*shares.values()] == sorted(shares.values(), reverse=True)
    assert next(iter(shares)) == "container-without-gpu"


def test_the_words_shown_speak_for_the_cause() -> None:
    found = resemblance(known_words("nccl hangs with two gpus, ddp, torchrun"))
    assert next(iter(found.shares)) == "nccl-p2p-problem"
    assert "nccl" in found.words


@pytest.mark.parametrize(
    ("text", "by_person"),
    [
        pytest.param("hi, what can i do about this? my card is not found", True, id="English"),
        pytest.param("ich habe es versucht, aber es geht nicht", True, id="German"),
        pytest.param("видеокарта не найдена, драйвер установлен", True, id="Russian"),
        pytest.param(
            "ggml_cuda_init: found 1 cuda devices: device 0: nvidia, compute capability 5.0", False, id="a log"
        ),
        pytest.param("it", False, id="one small word"),
    ],
)
def test_a_person_uses_small_words(text: str, by_person: bool) -> None:
    assert resemblance(known_words(text)).by_person is by_person


def test_every_cause_is_a_check() -> None:
    assert {*TABLE["answers"]} - {""} <= {check.id for check in own_checks()}


def test_the_reports_that_it_learned_from_are_found_again() -> None:
    sick = [report for report in REPORTS if report["cause"]][::10]
    first = [next(c for c in resemblance(tuple(report["words"].split())).shares if c) for report in sick]
    right = sum(cause in (report["cause"], *report["also"]) for cause, report in zip(first, sick, strict=True))
    assert right > 0.9 * len(sick)
