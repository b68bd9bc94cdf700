"""A container that was started without the GPU."""

from dataclasses import replace

import pytest

from gpudoctor.model import (
    CudaVersion,
    Cupy,
    Device,
    DeviceFile,
    Driver,
    Environment,
    Outcome,
    PciGpu,
    Severity,
    System,
    Torch,
    TorchRuntime,
)
from gpudoctor.testing import run_check

NVIDIA = PciGpu(address="0000:01:00.0", vendor="nvidia", device_id="2684", name="GeForce RTX 4090")
DOCKER = System(os="linux", wsl=0, container="docker", pci_gpus=(NVIDIA,))
BARE = Driver(installed=False, device_files=(), libcuda_path="", libcuda_files=(), nvml_code=12)
CUDA = Torch(installed=True, build="cuda", cuda_version=CudaVersion(13, 0))
CPU = Torch(installed=True, build="cpu")
NO_CUPY = Cupy(distributions=())
NO_DRIVER = TorchRuntime(available=False, availability_error="Found no NVIDIA driver on your system.")


def test_the_host_has_a_gpu() -> None:
    finding = run_check("container-without-gpu", system=DOCKER, driver=BARE, torch=CUDA).findings[0]
    assert finding.severity is Severity.ERROR
    assert finding.summary == (
        "This docker container has no device node of an NVIDIA GPU, although its host has GeForce RTX 4090"
    )
    assert "--gpus all" in finding.remedies[0].commands[0]


@pytest.mark.parametrize(
    ("torch", "driver", "severity"),
    [
        pytest.param(CPU, BARE, Severity.INFO, id="CPU build"),
        pytest.param(CUDA, BARE, Severity.WARNING, id="whether the host has one is unknown"),
        pytest.param(CUDA, replace(BARE, device_files=None), Severity.ERROR, id="pasted"),
    ],
)
def test_severity(torch: Torch, driver: Driver, severity: Severity) -> None:
    system = replace(DOCKER, pci_gpus=None)
    result = run_check("container-without-gpu", system=system, driver=driver, torch=torch, cupy=NO_CUPY)
    assert [finding.severity for finding in result.findings] == [severity]


def test_a_pasted_message_is_enough() -> None:
    result = run_check("container-without-gpu", system=System(container="docker"), torch_runtime=NO_DRIVER)
    assert result.outcome is Outcome.FOUND


def test_void_is_named() -> None:
    environment = Environment(variables={"NVIDIA_VISIBLE_DEVICES": "void"})
    finding = run_check("container-without-gpu", system=DOCKER, driver=BARE, environment=environment).findings[0]
    assert finding.summary.endswith("(NVIDIA_VISIBLE_DEVICES=void)")


@pytest.mark.parametrize(
    ("system", "driver", "devices"),
    [
        pytest.param(DOCKER, Driver(nvml_code=0), (Device(nvml_index=0),), id="NVML lists one"),
        pytest.param(replace(DOCKER, pci_gpus=()), BARE, (), id="the host has none"),
        pytest.param(
            DOCKER, Driver(device_files=(DeviceFile(path="/dev/nvidia0"),), nvml_code=999), (), id="nodes are there"
        ),
        pytest.param(
            replace(DOCKER, wsl=2, pci_gpus=()),
            Driver(device_files=(DeviceFile(path="/dev/dxg"),), nvml_code=12),
            (),
            id="the node of WSL is there",
        ),
    ],
)
def test_passes(system: System, driver: Driver, devices: tuple[Device, ...]) -> None:
    result = run_check("container-without-gpu", system=system, driver=driver, devices=devices, torch=CUDA)
    assert result.outcome is Outcome.PASSED


@pytest.mark.parametrize(
    ("system", "driver", "reason"),
    [
        pytest.param(replace(DOCKER, container=""), BARE, "this is not a container", id="no container"),
        pytest.param(System(), BARE, "system.container is unknown", id="container unknown"),
        pytest.param(DOCKER, Driver(), "driver.device_files is unknown", id="nodes unknown"),
    ],
)
def test_skipped(system: System, driver: Driver, reason: str) -> None:
    result = run_check("container-without-gpu", system=system, driver=driver, torch=CUDA)
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, reason)
