"""A ROCm build of PyTorch and an NVIDIA GPU."""

import pytest

from gpudoctor.model import (
    CudaVersion,
    Device,
    Driver,
    DriverVersion,
    Outcome,
    PackageVersion,
    PciGpu,
    Python,
    Severity,
    Symptom,
    System,
    Torch,
    TorchRuntime,
)
from gpudoctor.testing import run_check

NVIDIA = PciGpu(address="0000:01:00.0", vendor="nvidia", device_id="2684", name="GeForce RTX 4090")
AMD = PciGpu(address="0000:03:00.0", vendor="amd", device_id="744C", name="Radeon RX 7900 XTX")
ROCM = Torch(installed=True, version=PackageVersion("2.13.0+rocm7.2"), build="rocm", hip_version="7.2.1")
R580 = Driver(version=DriverVersion((580, 95, 5)), cuda_version=CudaVersion(13, 0))
PYTHON = Python(
    version=PackageVersion("3.12.3"), executable="/work/.venv/bin/python", platform_tag="linux_x86_64", packages=()
)


def linux(*gpus: PciGpu) -> System:
    return System(os="linux", machine="x86_64", wsl=0, container="", pci_gpus=gpus)


def test_found() -> None:
    result = run_check("rocm-build-on-nvidia", torch=ROCM, system=linux(NVIDIA), driver=R580, python=PYTHON)
    finding = result.findings[0]
    assert finding.severity is Severity.ERROR
    assert finding.summary == ("PyTorch 2.13.0+rocm7.2 is built for AMD's ROCm 7.2.1, but the GPU is GeForce RTX 4090")
    assert "torch==2.13.0+cu130" in " ".join(finding.remedies[0].commands)


def test_a_device_of_nvml_is_enough() -> None:
    devices = (Device(nvml_index=0, name="NVIDIA A10"),)
    assert "NVIDIA A10" in run_check("rocm-build-on-nvidia", torch=ROCM, devices=devices).findings[0].summary


@pytest.mark.parametrize(
    "system",
    [
        pytest.param(linux(NVIDIA, AMD), id="both vendors"),
        pytest.param(linux(AMD), id="AMD only"),
        pytest.param(System(pci_gpus=(NVIDIA,), amd_gfx_targets=("gfx1100",)), id="kfd lists an AMD GPU"),
    ],
)
def test_passes(system: System) -> None:
    assert run_check("rocm-build-on-nvidia", torch=ROCM, system=system).outcome is Outcome.PASSED


@pytest.mark.parametrize(
    ("torch", "reason"),
    [
        pytest.param(Torch(build="cuda"), "PyTorch is not a ROCm build", id="CUDA build"),
        pytest.param(Torch(), "torch.build is unknown", id="build unknown"),
        pytest.param(ROCM, "system.pci_gpus is unknown", id="bus unknown"),
    ],
)
def test_skipped(torch: Torch, reason: str) -> None:
    result = run_check("rocm-build-on-nvidia", torch=torch)
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, reason)


def said(kind: str, text: str = "as printed", **names: str) -> Symptom:
    return Symptom(kind=kind, text=text, names=names)


def test_a_report_that_names_an_nvidia_gpu() -> None:
    torch = Torch(installed=True, build="rocm")
    (finding,) = run_check("rocm-build-on-nvidia", torch=torch, symptoms=(said("nvidia-gpu-named"),)).findings
    assert finding.facts == ("torch.build", "symptoms[0].text")
    both = (said("nvidia-gpu-named"), said("amd-gpu-named"))
    assert run_check("rocm-build-on-nvidia", torch=torch, symptoms=both).outcome is Outcome.PASSED


@pytest.mark.parametrize(
    ("name", "available", "outcome"),
    [
        pytest.param("Cezanne", False, Outcome.FOUND, id="part of the processor, and no GPU is seen"),
        pytest.param("Cezanne", True, Outcome.PASSED, id="PyTorch uses it"),
        pytest.param("Radeon RX 6800", False, Outcome.PASSED, id="a card of AMD"),
    ],
)
def test_a_graphics_part_of_a_processor_next_to_the_nvidia_gpu(name: str, *, available: bool, outcome: Outcome) -> None:
    system = System(
        os="linux",
        pci_gpus=(
            PciGpu(address="0000:01:00.0", vendor="nvidia", device_id="249d", name="GeForce RTX 3070 Mobile"),
            PciGpu(address="0000:06:00.0", vendor="amd", device_id="1638", name=name),
        ),
    )
    torch = Torch(installed=True, version=PackageVersion("2.8.0+rocm6.4"), build="rocm")
    runtime = TorchRuntime(available=available)
    assert run_check("rocm-build-on-nvidia", torch=torch, system=system, torch_runtime=runtime).outcome is outcome
