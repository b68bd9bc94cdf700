"""PyTorch's build against the GPU."""

from __future__ import annotations

from typing import Any

import pytest

from gpudoctor.model import (
    ComputeCapability,
    CudaVersion,
    Device,
    Driver,
    DriverVersion,
    Environment,
    Outcome,
    PackageVersion,
    PciGpu,
    Severity,
    Symptom,
    System,
    Toolkit,
    Torch,
    TorchRuntime,
)
from gpudoctor.testing import run_check

CPU = Torch(installed=True, version=PackageVersion("2.13.0+cpu"), build="cpu")
L4 = Device(nvml_index=0, name="NVIDIA L4", compute_capability=ComputeCapability(8, 9))
ON_BUS = (PciGpu(address="01:00.0", vendor="nvidia", device_id="27B8", name="L4"),)
NO_GPU = System(os="linux", machine="x86_64", pci_gpus=())


def test_a_cpu_build_and_a_gpu() -> None:
    result = run_check("torch-cpu-build", torch=CPU, devices=(L4,))
    (finding,) = result.findings
    assert finding.severity is Severity.ERROR
    assert finding.summary == "PyTorch 2.13.0+cpu is built without CUDA, and the GPU is NVIDIA L4"
    assert finding.remedies[0].commands[0].endswith("torch==2.13.0+cu126")


@pytest.mark.parametrize(
    ("sections", "outcome"),
    [
        pytest.param({"torch": CPU, "devices": (), "system": NO_GPU}, Outcome.PASSED, id="no GPU"),
        pytest.param(
            {"torch": CPU, "system": System(pci_gpus=ON_BUS)}, Outcome.FOUND, id="on the bus, without a driver"
        ),
        pytest.param(
            {"torch": CPU, "system": System(pci_gpus=ON_BUS, container="docker"), "devices": ()},
            Outcome.PASSED,
            id="a GPU of the container's host",
        ),
        pytest.param(
            {"torch": CPU, "system": System(pci_gpus=(PciGpu(**{**vars(ON_BUS[0]), "bound_driver": "vfio-pci"}),))},
            Outcome.PASSED,
            id="handed on to a virtual machine",
        ),
        pytest.param(
            {"torch": CPU, "devices": (Device(nvml_index=0, compute_capability=ComputeCapability(3, 0)),)},
            Outcome.PASSED,
            id="a GPU for which there is no build",
        ),
        pytest.param(
            {"torch": Torch(installed=True, build="cuda"), "devices": (L4,)}, Outcome.PASSED, id="a CUDA build"
        ),
        pytest.param({"torch": Torch(installed=False), "devices": (L4,)}, Outcome.SKIPPED, id="no PyTorch"),
    ],
)
def test_outcome(sections: dict[str, Any], outcome: Outcome) -> None:
    assert run_check("torch-cpu-build", **sections).outcome is outcome


@pytest.mark.parametrize(
    "runtime",
    [
        pytest.param(TorchRuntime(version=PackageVersion("2.5.1+cpu")), id="by its version"),
        pytest.param(
            TorchRuntime(
                version=PackageVersion("2.5.1"),
                availability_error="AssertionError: Torch not compiled with CUDA enabled",
            ),
            id="by its message",
        ),
        pytest.param(
            TorchRuntime(version=PackageVersion("2.5.1"), hip_version="", architectures=(), mps_built=False),
            id="by its empty list of architectures",
        ),
    ],
)
def test_the_import_alone_shows_the_build(runtime: TorchRuntime) -> None:
    result = run_check("torch-cpu-build", torch_runtime=runtime, devices=(L4,))
    assert result.outcome is Outcome.FOUND


def test_a_build_for_metal_is_no_cpu_build() -> None:
    runtime = TorchRuntime(version=PackageVersion("2.5.1"), hip_version="", architectures=(), mps_built=True)
    assert run_check("torch-cpu-build", torch_runtime=runtime, devices=(L4,)).outcome is Outcome.PASSED


@pytest.mark.parametrize(("version", "said"), [("2.9.1+cpu", True), ("2.13.0+cpu", False)])
def test_the_default_wheel_of_aarch64_is_named(version: str, said: bool) -> None:
    """Before PyTorch 2.11 PyPI had no other for it."""
    torch = Torch(installed=True, version=PackageVersion(version), build="cpu")
    result = run_check("torch-cpu-build", torch=torch, devices=(L4,), system=System(os="linux", machine="aarch64"))
    assert ("as the default wheel for Linux on aarch64 is" in result.findings[0].summary) is said


@pytest.mark.parametrize(
    ("sections", "reason"),
    [
        pytest.param({"torch": CPU}, "devices is unknown", id="the GPU"),
        pytest.param({"torch": Torch(installed=True), "devices": (L4,)}, "torch.build is unknown", id="the build"),
        pytest.param({"devices": (L4,)}, "torch.installed is unknown", id="PyTorch"),
    ],
)
def test_unknown(sections: dict[str, Any], reason: str) -> None:
    result = run_check("torch-cpu-build", **sections)
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, reason)


def test_the_command_fits_the_driver() -> None:
    old = Driver(version=DriverVersion.parse("470.256.02"))
    result = run_check(
        "torch-cpu-build",
        torch=Torch(installed=True, version=PackageVersion("2.6.0+cpu"), build="cpu"),
        devices=(Device(nvml_index=0, name="NVIDIA A10", compute_capability=ComputeCapability(8, 6)),),
        driver=old,
    )
    assert result.findings[0].remedies[0].commands[0].endswith("whl/cu118 torch==2.6.0+cu118")


ASKED = (Symptom(kind="torch-not-compiled-with-cuda", text="Torch not compiled with CUDA enabled"),)
WANTED = (Symptom(kind="torch-gpu-wanted", text="torch.cuda.is_available() False"),)
UNAVAILABLE = TorchRuntime(available=False)


def test_a_program_that_asks_for_cuda_stands_for_the_gpu() -> None:
    torch = Torch(installed=True, build="cpu")
    (finding,) = run_check("torch-cpu-build", torch=torch, symptoms=ASKED).findings
    assert finding.summary == "PyTorch is built without CUDA, and a program asks for CUDA"
    assert "--index-url" in finding.remedies[0].commands[0]


@pytest.mark.parametrize(
    ("sections", "outcome"),
    [
        pytest.param({}, Outcome.FOUND, id="nothing else known"),
        pytest.param(
            {"torch_runtime": TorchRuntime(available=False, availability_error="x")}, Outcome.SKIPPED, id="why"
        ),
        pytest.param({"driver": Driver(nvml_error="Driver Not Loaded")}, Outcome.SKIPPED, id="the driver fails"),
        pytest.param({"symptoms": ()}, Outcome.SKIPPED, id="nobody asked"),
        pytest.param({"system": System(os="linux")}, Outcome.SKIPPED, id="the wheels of Linux have CUDA"),
        pytest.param(
            {"environment": Environment(variables={"CUDA_VISIBLE_DEVICES": "-1"})}, Outcome.SKIPPED, id="hidden"
        ),
        pytest.param(
            {"environment": Environment(variables={"CUDA_VISIBLE_DEVICES": "0"})}, Outcome.FOUND, id="not hidden"
        ),
        pytest.param(
            {"torch_runtime": TorchRuntime(available=False, device_count=1)}, Outcome.SKIPPED, id="a device is seen"
        ),
        pytest.param(
            {"devices": (Device(nvml_index=0, name="A100", mig_enabled=True),)}, Outcome.SKIPPED, id="MIG is on"
        ),
        pytest.param({"devices": ()}, Outcome.PASSED, id="no GPU"),
        pytest.param(
            {"torch": Torch(installed=True, version=PackageVersion("2.4.1")), "system": System(os="windows")},
            Outcome.FOUND,
            id="the default wheel of Windows",
        ),
        pytest.param(
            {"torch": Torch(installed=True, version=PackageVersion("2.4.1")), "system": System(os="linux")},
            Outcome.SKIPPED,
            id="the default wheel of Linux has CUDA",
        ),
    ],
)
def test_no_cuda_and_no_error(sections: dict[str, Any], outcome: Outcome) -> None:
    known = {"torch": Torch(installed=True), "torch_runtime": UNAVAILABLE, "symptoms": WANTED}
    assert run_check("torch-cpu-build", **{**known, **sections}).outcome is outcome


def test_macos_has_no_cuda() -> None:
    torch = Torch(installed=True, build="cpu")
    result = run_check("torch-cpu-build", torch=torch, symptoms=ASKED, system=System(os="darwin"))
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, "macOS has no CUDA")


@pytest.mark.parametrize(
    ("symptoms", "outcome"), [((), Outcome.FOUND), (None, Outcome.SKIPPED)], ids=["in a report", "on a machine"]
)
def test_a_toolkit_stands_for_the_gpu(symptoms: tuple[Symptom, ...] | None, outcome: Outcome) -> None:
    toolkit = Toolkit(nvcc_version=CudaVersion(11, 8))
    result = run_check("torch-cpu-build", torch=CPU, toolkit=toolkit, symptoms=symptoms)
    assert result.outcome is outcome
    if result.findings:
        assert result.findings[0].summary.endswith("the CUDA toolkit 11.8 is installed")
        assert "toolkit.nvcc_version" in result.findings[0].facts


def test_a_jetson_takes_the_wheel_of_its_jetpack() -> None:
    system = System(os="linux", machine="aarch64", kernel="5.15.148-tegra")
    finding = run_check("torch-cpu-build", torch=CPU, devices=(Device(nvml_index=0),), system=system).findings[0]
    assert "JetPack" in finding.remedies[0].summary
    assert any("jetson-ai-lab" in command for command in finding.remedies[0].commands)
