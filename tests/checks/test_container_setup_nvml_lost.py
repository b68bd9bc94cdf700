"""A container, seen from outside, that has lost the GPU."""

from dataclasses import replace

from gpudoctor.model import (
    Outcome,
    Severity,
    Symptom,
)
from gpudoctor.testing import run_check
from tests.container_setups import (
    WITH_GPU,
    findings,
    only,
)


def test_its_log_says_so() -> None:
    failure = Symptom(kind="container-nvml-unknown-error", text="Failed to initialize NVML: Unknown Error")
    finding = only("container-setup-nvml-lost", replace(WITH_GPU, failures=(failure,)))
    assert finding.severity is Severity.ERROR
    assert finding.facts == ("containers.setups[0].failures[0].text",)
    assert finding.remedies[0].commands[0] == "docker restart train"
    assert "docker run --device nvidia.com/gpu=all IMAGE nvidia-smi" in finding.remedies[1].commands


def test_without_containers_there_is_nothing_to_check() -> None:
    result = run_check("container-setup-nvml-lost")
    assert (result.outcome, result.applicable) == (Outcome.SKIPPED, False)


def test_a_failure_of_another_kind_is_no_loss() -> None:
    failure = Symptom(kind="container-unknown-device", text="unknown device")
    assert findings("container-setup-nvml-lost", replace(WITH_GPU, failures=(failure,))) == []
