"""Whether PyTorch's build has machine code for the GPUs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpudoctor.conclusions.torch_kernels import torch_kernels
from gpudoctor.model import (
    ComputeCapability,
    Gpu,
    KnownGpu,
    Nvrtc,
    Origin,
    PackageVersion,
    PciGpu,
    Pytorch,
    Symptom,
    System,
    TorchDevice,
    TorchDevices,
    TorchKernels,
)

REPORT = Origin(is_report=True)
AMPERE = KnownGpu(name="RTX 3090", capability=ComputeCapability(8, 6), fact="devices[0].compute_capability")
BLACKWELL = KnownGpu(name="RTX 5090", capability=ComputeCapability(12, 0), fact="devices[1].compute_capability")
HOPPER_BUILD = Pytorch(architectures=("sm_80", "sm_90"), facts={"architectures": "torch.architectures"})
REFUSED = Symptom(kind="nvrtc-architecture-refused", text="--gpu-architecture", fact="symptoms[0].text")
NO_KERNEL = Symptom(kind="torch-no-kernel-image", text="no kernel image is available", fact="symptoms[0].text")


def kernels(
    pytorch: Pytorch = HOPPER_BUILD,
    gpus: tuple[KnownGpu, ...] = (AMPERE, BLACKWELL),
    listed: tuple[TorchDevice, ...] = (),
    symptoms: tuple[Symptom, ...] = (),
    system: System | None = None,
    nvrtc: Nvrtc | None = None,
) -> TorchKernels:
    return torch_kernels(
        pytorch, TorchDevices(listed=listed), Gpu(known=gpus), nvrtc or Nvrtc(), REPORT, system or System(), symptoms
    )


def test_each_gpu_is_compared_with_the_code() -> None:
    found = kernels()
    assert (found.code, found.fact, found.runs) == ("sm_80 sm_90", "torch.architectures", (True, False))
    assert found.missing == (BLACKWELL,)


def test_the_gpus_of_pytorch_count_first_and_one_that_computes_runs() -> None:
    device = TorchDevice(cuda_index=0, name="RTX 5090", capability=ComputeCapability(12, 0), right=frozenset({"fp32"}))
    found = kernels(listed=(device,))
    assert [gpu.fact for gpu in found.gpus] == ["torch_runtime.device_capabilities[0]"]
    assert found.runs == (True,)


@pytest.mark.parametrize(
    ("symptoms", "runs"),
    [pytest.param((), None, id="not known"), pytest.param((NO_KERNEL,), False, id="it failed in that build")],
)
def test_builds_of_a_release_that_differ(symptoms: tuple[Symptom, ...], runs: bool | None) -> None:
    release = Pytorch(version=PackageVersion("2.9.1"), facts={"version": "torch.version"})
    pascal = KnownGpu(name="GTX 1080", capability=ComputeCapability(6, 1), fact="devices[0].name")
    found = kernels(release, (pascal,), symptoms=symptoms)
    assert found.runs == (runs,)
    assert found.source


def test_the_one_gpu_of_the_bus_counts_in_a_report() -> None:
    gpu = PciGpu(address="01:00.0", vendor="nvidia", device_id="2684", name="NVIDIA GeForce RTX 4090")
    assert [str(found) for found in kernels(gpus=(), system=System(pci_gpus=(gpu,))).gpus] == [
        "NVIDIA GeForce RTX 4090 (sm_89)"
    ]
    assert kernels(gpus=(), system=System(pci_gpus=(gpu, gpu))).gpus == ()


def test_an_nvrtc_that_refuses_is_not_that_of_cupy() -> None:
    found = kernels(gpus=(), symptoms=(REFUSED,), nvrtc=Nvrtc(refused=REFUSED, named_gpus=(AMPERE,)))
    assert (found.refused, found.gpus) == (REFUSED, (AMPERE,))
    of_cupy = replace(REFUSED, fact="cupy_runtime.calls[0].error")
    assert kernels(symptoms=(of_cupy,), nvrtc=Nvrtc(refused=of_cupy)).refused is None


def test_an_error_of_cupy_is_none_of_pytorch() -> None:
    other = Symptom(kind="torch-no-kernel-image", text="no kernel image is available", fact="cupy_runtime.device_error")
    assert kernels(symptoms=(other,)).failed is None
    assert kernels(symptoms=(NO_KERNEL,)).failed == NO_KERNEL


@pytest.mark.parametrize(("version", "code"), [("2.3.0", False), ("2.3.0+cu121", True)])
def test_the_table_says_nothing_about_wheels_of_nvidia_for_jetson(version: str, code: bool) -> None:
    orin = KnownGpu(name="Orin (nvgpu)", capability=ComputeCapability(8, 7), fact="devices[0].compute_capability")
    pytorch = Pytorch(version=PackageVersion(version), facts={"version": "torch.version"})
    assert bool(kernels(pytorch, (orin,)).code) is code
    assert kernels(pytorch, (orin,), symptoms=(NO_KERNEL,)).code
