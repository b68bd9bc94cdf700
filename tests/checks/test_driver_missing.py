"""An NVIDIA GPU without an NVIDIA driver."""

import pytest

from gpudoctor.model import (
    Device,
    Driver,
    DriverVersion,
    Outcome,
    PciGpu,
    Severity,
    Symptom,
    System,
    TorchRuntime,
)
from gpudoctor.testing import run_check

NVIDIA = PciGpu(address="0000:01:00.0", vendor="nvidia", device_id="2684", name="GeForce RTX 4090")
UBUNTU = System(os="linux", distribution="ubuntu", wsl=0, container="", pci_gpus=(NVIDIA,))
NONE = Driver(installed=False, module_loaded=False, libcuda_path="", libcuda_files=(), nvml_code=12)
NO_DRIVER = TorchRuntime(
    available=False,
    availability_error="Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU and installed "
    "a driver from http://www.nvidia.com/Download/index.aspx",
)


def test_a_gpu_without_a_driver() -> None:
    result = run_check("driver-missing", driver=NONE, system=UBUNTU)
    finding = result.findings[0]
    assert finding.severity is Severity.ERROR
    assert finding.summary == "GeForce RTX 4090 is on the PCI bus, but no NVIDIA driver is installed"
    assert "sudo ubuntu-drivers install" in finding.remedies[0].commands
    assert "root" in finding.remedies[0].needs


def test_a_gpu_that_a_report_only_names() -> None:
    named = System(wsl=0, container="", pci_gpus=(PciGpu(address="", vendor="nvidia", device_id="", name="GTX 1650"),))
    (finding,) = run_check("driver-missing", driver=NONE, system=named).findings
    assert finding.summary == "No NVIDIA driver is installed for GTX 1650"


@pytest.mark.parametrize(
    "sections",
    [
        pytest.param({"torch_runtime": NO_DRIVER}, id="only PyTorch's message"),
        pytest.param({"driver": Driver(nvml_error="NVML Shared Library Not Found")}, id="only NVML's message"),
        pytest.param({"driver": Driver(installed=False), "torch_runtime": NO_DRIVER}, id="bus unknown"),
    ],
)
def test_a_pasted_message_is_enough(sections: dict[str, object]) -> None:
    result = run_check("driver-missing", **sections)
    assert result.outcome is Outcome.FOUND
    assert "libcuda cannot be loaded" in result.findings[0].summary


@pytest.mark.parametrize(
    "sections",
    [
        pytest.param({"driver": NONE, "system": System(wsl=0, container="", pci_gpus=())}, id="no GPU on the bus"),
        pytest.param({"driver": Driver(installed=True), "system": UBUNTU}, id="installed"),
        pytest.param(
            {"driver": Driver(version=DriverVersion((580, 95, 5))), "torch_runtime": NO_DRIVER},
            id="NVML works, libcuda does not",
        ),
    ],
)
def test_passes(sections: dict[str, object]) -> None:
    assert run_check("driver-missing", **sections).outcome is Outcome.PASSED


@pytest.mark.parametrize(
    ("sections", "reason"),
    [
        pytest.param(
            {"driver": NONE, "system": System(container="docker")},
            "a container uses the driver of its host",
            id="container",
        ),
        pytest.param({"driver": NONE, "system": System(wsl=2)}, "WSL uses the Windows driver", id="WSL"),
        pytest.param({}, "driver.installed is unknown", id="nothing known"),
        pytest.param({"driver": Driver(installed=False)}, "system.pci_gpus is unknown", id="bus unknown"),
    ],
)
def test_skipped(sections: dict[str, object], reason: str) -> None:
    result = run_check("driver-missing", **sections)
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, reason)


def test_a_message_may_come_from_a_container() -> None:
    remedies = run_check("driver-missing", torch_runtime=NO_DRIVER).findings[0].remedies
    assert "--gpus all" in remedies[1].commands[0]
    assert len(run_check("driver-missing", driver=NONE, system=UBUNTU).findings[0].remedies) == 1


@pytest.mark.parametrize(
    "kind", ["torch-no-driver", "nvidia-smi-not-found", "nvml-library-not-found", "libcuda-not-found"]
)
def test_a_message_alone(kind: str) -> None:
    finding = run_check("driver-missing", symptoms=(Symptom(kind=kind, text="as printed"),)).findings[0]
    assert finding.severity is Severity.ERROR
    assert finding.facts == ("symptoms[0].text",)
    assert "ubuntu-drivers install" in finding.remedies[0].summary


@pytest.mark.parametrize("kind", ["nvml-driver-not-loaded", "nvml-version-mismatch", "torch-no-gpus"])
def test_what_only_a_driver_prints(kind: str) -> None:
    symptoms = (Symptom(kind="torch-no-driver", text=""), Symptom(kind=kind, text=""))
    assert run_check("driver-missing", symptoms=symptoms).outcome is Outcome.PASSED


def test_a_gpu_that_is_only_named_proves_no_driver() -> None:
    symptoms = (Symptom(kind="torch-no-driver", text="Found no NVIDIA driver on your system"),)
    named = (Device(nvml_index=0, name="NVIDIA GeForce RTX 3060"),)
    seen = (Device(nvml_index=0, name="NVIDIA GeForce RTX 3060", memory_total_bytes=2**33),)
    assert run_check("driver-missing", symptoms=symptoms, devices=named).outcome is Outcome.FOUND
    assert run_check("driver-missing", symptoms=symptoms, devices=seen).outcome is Outcome.PASSED


def test_no_nvidia_smi_if_pytorch_computes_is_no_error() -> None:
    symptoms = (Symptom(kind="nvidia-smi-not-found", text="nvidia-smi: command not found"),)
    result = run_check("driver-missing", symptoms=symptoms, torch_runtime=TorchRuntime(available=True))
    assert result.findings[0].severity is Severity.INFO
