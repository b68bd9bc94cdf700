"""The fabric manager of NVSwitch machines."""

from dataclasses import replace

import pytest

from gpudoctor.model import Device, Driver, DriverVersion, Outcome, Severity, Symptom, System, TorchRuntime
from gpudoctor.testing import run_check

VERSION = DriverVersion((580, 95, 5))
LINUX = System(os="linux", distribution="ubuntu", wsl=0, container="")
HGX = Driver(version=VERSION, nvswitches=4, fabric_manager="running", fabric_manager_version=VERSION)
H100 = Device(nvml_index=0, name="NVIDIA H100 80GB HBM3", fabric_state="completed")
WAITING = replace(H100, fabric_state="in-progress")


@pytest.mark.parametrize(
    ("driver", "devices", "summary", "command"),
    [
        pytest.param(
            replace(HGX, fabric_manager="not-running", cuda_init_code=802),
            (),
            "The fabric manager does not run on a machine with 4 NVSwitches; CUDA fails with error 802",
            "sudo systemctl enable --now nvidia-fabricmanager",
            id="not running",
        ),
        pytest.param(
            replace(HGX, fabric_manager="not-installed", fabric_manager_version=None),
            (),
            "The fabric manager is not installed on a machine with 4 NVSwitches",
            "sudo apt-get install -y 'nvidia-fabricmanager-580=580.95.05-*'",
            id="not installed",
        ),
        pytest.param(
            replace(HGX, fabric_manager="not-running", fabric_manager_version=DriverVersion((580, 82, 7))),
            (),
            "is version 580.82.07 and does not run, but the driver is version 580.95.05",
            "sudo apt-get install -y 'nvidia-fabricmanager-580=580.95.05-*'",
            id="another version",
        ),
        pytest.param(
            Driver(version=VERSION),
            (H100, WAITING),
            "1 of 2 GPUs has not joined the NVLink fabric",
            "sudo apt-get install -y 'nvidia-fabricmanager-580=580.95.05-*'",
            id="fabric state of nvidia-smi -q",
        ),
    ],
)
def test_found(driver: Driver, devices: tuple[Device, ...], summary: str, command: str) -> None:
    finding = run_check("fabric-manager-not-running", driver=driver, devices=devices, system=LINUX).findings[0]
    assert finding.severity is Severity.ERROR
    assert summary in finding.summary
    assert finding.remedies[0].commands[0] == command


def test_the_message_of_pytorch_is_enough() -> None:
    runtime = TorchRuntime(availability_error="Unexpected error. Error 802: system not yet initialized")
    finding = run_check("fabric-manager-not-running", torch_runtime=runtime).findings[0]
    assert finding.severity is Severity.ERROR
    assert "error 802" in finding.summary


def test_a_waiting_device_is_a_warning_if_cuda_works() -> None:
    driver = Driver(version=VERSION, cuda_init_code=0)
    result = run_check("fabric-manager-not-running", driver=driver, devices=(WAITING,))
    assert [finding.severity for finding in result.findings] == [Severity.WARNING]


@pytest.mark.parametrize(
    ("driver", "devices", "system"),
    [
        pytest.param(HGX, (H100,), LINUX, id="in order"),
        pytest.param(replace(HGX, fabric_manager="not-running", cuda_init_code=0), (), LINUX, id="CUDA works"),
        pytest.param(replace(HGX, nvswitches=0, fabric_manager="not-installed"), (), LINUX, id="no NVSwitches"),
        pytest.param(replace(HGX, fabric_manager="not-installed"), (H100,), LINUX, id="joined, run by another machine"),
        pytest.param(
            replace(HGX, fabric_manager="not-installed"),
            (),
            replace(LINUX, container="docker"),
            id="its process is not visible in a container",
        ),
    ],
)
def test_passes(driver: Driver, devices: tuple[Device, ...], system: System) -> None:
    result = run_check("fabric-manager-not-running", driver=driver, devices=devices, system=system)
    assert result.outcome is Outcome.PASSED


def test_unknown() -> None:
    result = run_check("fabric-manager-not-running", driver=Driver(version=VERSION), devices=(Device(nvml_index=0),))
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, "driver.nvswitches is unknown")


READY = Symptom(kind="cuda-system-not-ready", text="system not yet initialized", code="cuda-802")
FAILED = Symptom(kind="fabric-manager-failed", text="nvidia-fabricmanager.service: Failed with result")
NO_SWITCH = Symptom(kind="nvswitch-not-found", text="NV_WARN_NOTHING_TO_DO")
NAMED = Symptom(kind="nvswitch-named", text="HGX")


@pytest.mark.parametrize(
    ("symptoms", "severity"),
    [
        pytest.param((READY,), Severity.ERROR, id="802"),
        pytest.param((FAILED,), Severity.ERROR, id="the service failed"),
        pytest.param((FAILED, NO_SWITCH), Severity.WARNING, id="no NVSwitch found"),
        pytest.param((FAILED, NO_SWITCH, NAMED), Severity.ERROR, id="no NVSwitch found where there are some"),
        pytest.param((FAILED, NO_SWITCH, READY), Severity.ERROR, id="no NVSwitch found, and CUDA waits"),
    ],
)
def test_what_a_report_says(symptoms: tuple[Symptom, ...], severity: Severity) -> None:
    (finding,) = run_check("fabric-manager-not-running", symptoms=symptoms).findings
    assert finding.severity is severity
    assert "fabricmanager" in finding.remedies[0].commands[-2 if severity is Severity.ERROR else 0]


def test_a_report_of_another_version_names_both() -> None:
    driver = Driver(
        version=DriverVersion((550, 120)),
        fabric_manager="not-running",
        fabric_manager_version=DriverVersion((550, 127, 5)),
    )
    symptoms = (Symptom(kind="fabric-manager-of-another-version", text="do not match"),)
    (finding,) = run_check("fabric-manager-not-running", driver=driver, symptoms=symptoms).findings
    assert "550.127.05" in finding.summary
    assert "550.120" in finding.summary


NVLS = Symptom(kind="fabric-manager-nvls-refused", text="NCCL WARN Cuda failure 'invalid argument'")


@pytest.mark.parametrize(
    ("symptoms", "fixes"),
    [
        pytest.param((READY,), ["start-fabric-manager"], id="not ready"),
        pytest.param((FAILED, NO_SWITCH), ["leave-fabric-manager", "start-fabric-manager"], id="no switch"),
        pytest.param((FAILED, NO_SWITCH, NAMED), ["start-fabric-manager"], id="a switch is named"),
        pytest.param((NVLS,), ["start-fabric-manager", "reboot"], id="NVLink SHARP"),
        pytest.param((NVLS, READY), ["start-fabric-manager"], id="NVLink SHARP and not ready"),
    ],
)
def test_fixes_and_fact_of_a_report(symptoms: tuple[Symptom, ...], fixes: list[str]) -> None:
    (finding,) = run_check("fabric-manager-not-running", symptoms=symptoms).findings
    assert [fix.name for fix in finding.fixes] == fixes
    assert finding.facts[0] == f"symptoms[{1 if READY in symptoms[1:] else 0}].text"
