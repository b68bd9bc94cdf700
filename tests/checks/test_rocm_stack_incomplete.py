"""rocm-stack-incomplete."""

import pytest

from gpudoctor.model import Outcome, Severity, Symptom
from gpudoctor.testing import run_check

CHECK = "rocm-stack-incomplete"


def said(kind: str, text: str = "as printed", **names: str) -> Symptom:
    return Symptom(kind=kind, text=text, names=names)


@pytest.mark.parametrize(
    ("message", "summary", "advice"),
    [
        pytest.param(
            said("rocm-kfd-denied"),
            "The user or the container has no access to the AMD GPU: as printed",
            "render",
            id="permission",
        ),
        pytest.param(
            said("rocm-module-not-loaded"), "The kernel driver of ROCm is not loaded: as printed", "amdgpu", id="module"
        ),
        pytest.param(
            said("rocm-library-missing", library="libhipblas.so.2"),
            "The ROCm library libhipblas.so.2 is missing, or of another version: as printed",
            "major version",
            id="library",
        ),
        pytest.param(said("rocm-no-device"), "PyTorch for ROCm sees no GPU: as printed", "/dev/kfd", id="no device"),
    ],
)
def test_found(message: Symptom, summary: str, advice: str) -> None:
    (finding,) = run_check(CHECK, symptoms=(message,)).findings
    assert finding.severity is Severity.ERROR
    assert finding.summary == summary
    assert advice in finding.remedies[0].summary


def test_a_device_that_cannot_be_opened_is_the_reason_that_none_is_seen() -> None:
    (finding,) = run_check(CHECK, symptoms=(said("rocm-no-device"), said("rocm-kfd-denied"))).findings
    assert finding.facts == ("symptoms[1].text",)
    assert 'sudo usermod -aG render,video "$USER"' in finding.remedies[0].commands


def test_another_message_is_not_its_question() -> None:
    result = run_check(CHECK, symptoms=(said("hip-no-binary"),))
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, "no message reports this problem")
