"""The kernel module of the driver against its libraries."""

from dataclasses import replace

import pytest

from gpudoctor.model import CupyRuntime, Driver, DriverVersion, Outcome, Severity, Symptom, System, TorchRuntime
from gpudoctor.testing import run_check

LINUX = System(os="linux", wsl=0, container="", user_is_root=False)
MIXED = Driver(
    installed=True,
    module_version=DriverVersion((535, 183, 1)),
    library_version=DriverVersion((535, 216, 1)),
    nvml_code=18,
    nvml_error="Driver/library version mismatch",
)


def test_both_versions_are_named_and_a_reboot_fixes_it() -> None:
    finding = run_check("driver-library-mismatch", driver=MIXED, system=LINUX).findings[0]
    assert finding.severity is Severity.ERROR
    assert finding.summary == "The kernel module is from driver 535.183.01, but the libraries are from 535.216.01"
    assert finding.remedies[0].commands[0] == "sudo reboot"
    commands = " ".join(command for remedy in finding.remedies for command in remedy.commands)
    assert "rmmod" in commands
    assert "install" not in commands


@pytest.mark.parametrize(
    "sections",
    [
        pytest.param({"driver": Driver(nvml_error="Driver/library version mismatch")}, id="nvidia-smi's text"),
        pytest.param(
            {"driver": Driver(nvml_error="nvml error: driver/library version mismatch: unknown")}, id="Docker's text"
        ),
        pytest.param({"driver": Driver(cuda_init_code=803)}, id="cuInit 803"),
        pytest.param(
            {
                "torch_runtime": TorchRuntime(
                    availability_error="Error 803: system has unsupported display driver / cuda driver combination"
                )
            },
            id="PyTorch's text",
        ),
        pytest.param(
            {
                "cupy_runtime": CupyRuntime(
                    device_error="cudaErrorSystemDriverMismatch: system has unsupported display driver / "
                    "cuda driver combination"
                )
            },
            id="CuPy's text",
        ),
    ],
)
def test_a_message_is_enough(sections: dict[str, object]) -> None:
    assert run_check("driver-library-mismatch", **sections).outcome is Outcome.FOUND


def test_in_a_container_the_container_is_restarted() -> None:
    system = replace(LINUX, container="docker")
    finding = run_check("driver-library-mismatch", driver=MIXED, system=system).findings[0]
    assert finding.remedies[0].commands[-1] == "docker restart CONTAINER"


@pytest.mark.parametrize(
    "driver",
    [
        pytest.param(replace(MIXED, nvml_code=0, nvml_error="", cuda_init_code=0), id="a second copy, all works"),
        pytest.param(
            Driver(cuda_init_code=803, libcuda_path="/usr/local/cuda/compat/libcuda.so.1"),
            id="forward compatibility package",
        ),
        pytest.param(replace(MIXED, module_version=MIXED.library_version, nvml_code=9), id="equal versions"),
    ],
)
def test_passes(driver: Driver) -> None:
    assert run_check("driver-library-mismatch", driver=driver, system=LINUX).outcome is Outcome.PASSED


@pytest.mark.parametrize(
    ("sections", "reason"),
    [
        pytest.param(
            {"driver": replace(MIXED, nvml_code=None, nvml_error=None)}, "driver.nvml_code is unknown", id="init"
        ),
        pytest.param({}, "driver is unknown"),
    ],
)
def test_skipped(sections: dict[str, object], reason: str) -> None:
    result = run_check("driver-library-mismatch", **sections)
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, reason)


@pytest.mark.parametrize("kind", ["nvml-version-mismatch", "nvrm-api-mismatch", "tensorflow-version-mismatch"])
def test_a_message_alone(kind: str) -> None:
    finding = run_check("driver-library-mismatch", symptoms=(Symptom(kind=kind, text="as printed"),)).findings[0]
    assert finding.facts == ("symptoms[0].text",)
    assert "sudo reboot" in finding.remedies[0].commands


@pytest.mark.parametrize(
    ("available", "outcome"),
    [
        pytest.param(False, Outcome.FOUND, id="PyTorch finds no GPU"),
        pytest.param(True, Outcome.SKIPPED, id="PyTorch works"),
    ],
)
def test_versions_that_differ_next_to_pytorch(available: bool, outcome: Outcome) -> None:
    driver = replace(MIXED, nvml_code=None, nvml_error=None)
    result = run_check("driver-library-mismatch", driver=driver, torch_runtime=TorchRuntime(available=available))
    assert result.outcome is outcome


@pytest.mark.parametrize("answers", [{"nvml_code": 0}, {"nvml_code": None, "cuda_init_code": 0}])
def test_a_driver_that_answers_passes(answers: dict[str, int | None]) -> None:
    driver = replace(MIXED, nvml_error="", **answers)  # type: ignore[arg-type]
    result = run_check("driver-library-mismatch", driver=driver, torch_runtime=TorchRuntime(available=False))
    assert result.outcome is Outcome.PASSED
