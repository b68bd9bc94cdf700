"""CUDA's initialisation fails without saying why."""

from dataclasses import replace

import pytest

from gpudoctor.model import DeviceFile, Driver, Outcome, Severity, Symptom, System, TorchRuntime
from gpudoctor.testing import run_check

LINUX = System(os="linux", wsl=0, container="")
UVM = DeviceFile(path="/dev/nvidia-uvm", mode="666", accessible=True)
CTL = DeviceFile(path="/dev/nvidiactl", mode="666", accessible=True)
TEXT = "CUDA unknown error - this may be due to an incorrectly set up environment, e.g. changing env variable"


@pytest.mark.parametrize(
    ("driver", "reason"),
    [
        pytest.param(Driver(cuda_init_code=999, uvm_loaded=False), "nvidia_uvm is not loaded", id="module"),
        pytest.param(Driver(cuda_init_code=999, device_files=(CTL,)), "/dev/nvidia-uvm is missing", id="no node"),
        pytest.param(
            Driver(cuda_init_code=999, device_files=(CTL, DeviceFile(path="/dev/nvidia-uvm", accessible=False))),
            "/dev/nvidia-uvm cannot be opened",
            id="node refused",
        ),
    ],
)
def test_the_reason_is_named(driver: Driver, reason: str) -> None:
    finding = run_check("cuda-init-unknown-error-999", driver=driver, system=LINUX).findings[0]
    assert finding.severity is Severity.ERROR
    assert reason in finding.summary
    assert "sudo modprobe nvidia_uvm" in finding.remedies[0].commands


@pytest.mark.parametrize(
    ("driver", "facts"),
    [
        pytest.param(Driver(uvm_loaded=False), ("driver.uvm_loaded",), id="module"),
        pytest.param(Driver(device_files=(CTL,)), ("driver.device_files",), id="no node"),
        pytest.param(
            Driver(device_files=(CTL, replace(UVM, accessible=False))), ("driver.device_files[1].error",), id="refused"
        ),
        pytest.param(Driver(uvm_loaded=True, device_files=(CTL, UVM)), (), id="all there"),
        pytest.param(Driver(device_files=()), (), id="no nodes at all"),
        pytest.param(Driver(), (), id="unknown"),
    ],
)
def test_the_facts_of_the_reason(driver: Driver, facts: tuple[str, ...]) -> None:
    driver = replace(driver, cuda_init_code=999)
    finding = run_check("cuda-init-unknown-error-999", driver=driver, system=LINUX).findings[0]
    assert finding.facts == ("driver.cuda_init_code", *facts)
    assert finding.summary.endswith("error 999, unknown") is (not facts)


def test_a_loaded_module_is_unloaded_first() -> None:
    driver = Driver(cuda_init_code=999, uvm_loaded=True)
    commands = run_check("cuda-init-unknown-error-999", driver=driver, system=LINUX).findings[0].remedies[0].commands
    assert commands[:2] == ("sudo rmmod nvidia_uvm", "sudo modprobe nvidia_uvm")


def test_the_message_of_pytorch_is_enough() -> None:
    runtime = TorchRuntime(available=False, availability_error=TEXT)
    finding = run_check("cuda-init-unknown-error-999", torch_runtime=runtime).findings[0]
    assert finding.facts == ("torch_runtime.availability_error",)


def test_a_container_is_fixed_on_its_host() -> None:
    system = System(os="linux", container="docker")
    finding = run_check("cuda-init-unknown-error-999", driver=Driver(cuda_init_code=999), system=system).findings[0]
    assert finding.remedies[0].commands[0] == "sudo nvidia-modprobe -u -c=0"


def test_wsl_is_restarted() -> None:
    system = System(os="linux", wsl=2, container="")
    driver = Driver(cuda_init_code=999, uvm_loaded=False)
    finding = run_check("cuda-init-unknown-error-999", driver=driver, system=system).findings[0]
    assert "nvidia_uvm" not in finding.summary
    assert finding.remedies[0].commands == ("wsl --shutdown",)


@pytest.mark.parametrize("code", [0, 100, 803])
def test_other_results_pass(code: int) -> None:
    assert run_check("cuda-init-unknown-error-999", driver=Driver(cuda_init_code=code)).outcome is Outcome.PASSED


def test_unknown() -> None:
    result = run_check("cuda-init-unknown-error-999", driver=Driver())
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, "driver.cuda_init_code is unknown")


def test_a_message_of_any_program() -> None:
    symptoms = (Symptom(kind="cuda-unknown-error", text="CUDA_ERROR_UNKNOWN", code="cuda-999"),)
    finding = run_check("cuda-init-unknown-error-999", symptoms=symptoms).findings[0]
    assert finding.facts == ("symptoms[0].text",)
    assert "sudo modprobe nvidia_uvm" in finding.remedies[0].commands


def test_another_code_is_another_problem() -> None:
    symptoms = (Symptom(kind="cuda-no-device", text="CUDA_ERROR_NO_DEVICE", code="cuda-100"),)
    result = run_check("cuda-init-unknown-error-999", symptoms=symptoms)
    assert (result.outcome, result.applicable) == (Outcome.SKIPPED, False)


def test_a_failed_call_of_the_operating_system_has_the_same_reasons() -> None:
    driver = Driver(cuda_init_code=304, uvm_loaded=False)
    (finding,) = run_check("cuda-init-unknown-error-999", driver=driver).findings
    assert "error 304" in finding.summary
    assert "nvidia_uvm is not loaded" in finding.summary
