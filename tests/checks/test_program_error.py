"""Errors of the program itself are advice, each with what helps."""

import pytest

from gpudoctor.model import Outcome, Severity, Symptom
from gpudoctor.readers import messages
from gpudoctor.readers.text import clean_text
from gpudoctor.symptoms.tables import failure_messages
from gpudoctor.testing import run_check

OURS = [row for row in failure_messages() if row.id.startswith("program-")]


def kinds(text: str) -> list[str]:
    found = messages.read(clean_text(text, "log"))["symptoms"]
    return [message.kind for message in found if message.kind.startswith("program-")]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("RuntimeError: CUDA error: an illegal memory access was\n> encountered", "program-illegal-memory-access"),
        ("cudaErrorIllegalAddress", "program-illegal-memory-access"),
        ("RuntimeError: CUDA error: device-side assert triggered", "program-device-assert"),
        ("CUDA_ERROR_LAUNCH_FAILED: unspecified launch failure", "program-launch-failure"),
        ("CUDA error: too many resources requested for launch", "program-launch-resources"),
        ("CUDA error: the launch timed out and was terminated", "program-launch-timeout"),
        ("RuntimeError: CUDA error: misaligned address", "program-misaligned-address"),
        ("RuntimeError: Cannot re-initialize CUDA in forked subprocess. To use CUDA", "program-fork-after-cuda"),
        ("Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!",
         "program-two-devices"),
        ("Input type (torch.FloatTensor) and weight type (torch.cuda.FloatTensor) should be the same",
         "program-two-devices"),
        ("Tensors allocated with expandable_segments:True cannot be shared between processes.",
         "program-expandable-segments-shared"),
        ("CUDA error: invalid configuration argument", "program-invalid-configuration"),
    ],
)  # fmt: skip
def test_wordings(text: str, kind: str) -> None:
    assert set(kinds(text)) == {kind}


@pytest.mark.parametrize("text", ["the address is misaligned", "all tensors are on one device", "RuntimeError: boom"])
def test_near_misses(text: str) -> None:
    assert kinds(text) == []


def test_each_row_says_what_helps() -> None:
    assert OURS
    assert all(row.answers[0]["fixes"] for row in OURS)


def test_it_is_advice_with_a_remedy() -> None:
    message = Symptom(
        kind="program-device-assert", text="device-side assert triggered", library="cuda", code="cuda-710"
    )
    result = run_check("program-error", symptoms=(message, message))
    (finding,) = result.findings
    assert finding.severity is Severity.INFO
    assert "error cuda-710" in finding.summary
    assert "CUDA_LAUNCH_BLOCKING=1" in finding.remedies[0].summary


def test_without_such_a_message_the_question_does_not_arise() -> None:
    result = run_check("program-error", symptoms=())
    assert (result.outcome, result.applicable) == (Outcome.SKIPPED, False)
