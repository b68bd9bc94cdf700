"""The daemon of the Multi-Process Service."""

import pytest

from gpudoctor.model import Driver, Environment, Outcome, Severity, Symptom, System, TorchRuntime
from gpudoctor.testing import run_check


@pytest.mark.parametrize(
    ("code", "words"),
    [
        pytest.param(805, "cannot reach the daemon", id="no daemon"),
        pytest.param(806, "does not answer", id="the call failed"),
        pytest.param(807, "accepts no programs at the moment", id="not ready"),
    ],
)
def test_each_error(code: int, words: str) -> None:
    (finding,) = run_check("mps-daemon-unreachable", driver=Driver(cuda_init_code=code)).findings
    assert finding.severity is Severity.ERROR
    assert words in finding.summary
    assert f"error {code}" in finding.summary
    assert "nvidia-cuda-mps-control -d" in finding.remedies[0].commands


def test_the_folder_is_named_and_running_without_it_is_the_other_way() -> None:
    (finding,) = run_check(
        "mps-daemon-unreachable",
        driver=Driver(cuda_init_code=805),
        environment=Environment(variables={"CUDA_MPS_PIPE_DIRECTORY": "/run/mps"}),
    ).findings
    assert '"/run/mps"' in finding.summary
    assert finding.facts == ("driver.cuda_init_code", "environment.CUDA_MPS_PIPE_DIRECTORY")
    assert "unset CUDA_MPS_PIPE_DIRECTORY" in finding.remedies[1].commands


def test_the_text_of_pytorch_is_enough() -> None:
    text = "Error 805: MPS client failed to connect to the MPS control daemon or the MPS server"
    result = run_check("mps-daemon-unreachable", torch_runtime=TorchRuntime(availability_error=text))
    assert result.outcome is Outcome.FOUND


def test_a_container_gets_the_folder_of_its_host() -> None:
    said = (Symptom(kind="cuda-mps-connection-failed", text="MPS client failed to connect", code="cuda-805"),)
    (finding,) = run_check("mps-daemon-unreachable", symptoms=said, system=System(container="docker")).findings
    assert "mount that folder of the host" in finding.remedies[0].summary


@pytest.mark.parametrize("code", [0, 100, 999])
def test_other_results_pass(code: int) -> None:
    variables = Environment(variables={"CUDA_MPS_PIPE_DIRECTORY": "/run/mps"})
    result = run_check("mps-daemon-unreachable", driver=Driver(cuda_init_code=code), environment=variables)
    assert result.outcome is Outcome.PASSED


def test_unknown() -> None:
    result = run_check("mps-daemon-unreachable", driver=Driver(cuda_init_code=None))
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, "driver.cuda_init_code is unknown")


def test_another_message() -> None:
    other = (Symptom(kind="cuda-no-device", text="no CUDA-capable device", code="cuda-100"),)
    result = run_check("mps-daemon-unreachable", symptoms=other)
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, "no message reports this problem")
