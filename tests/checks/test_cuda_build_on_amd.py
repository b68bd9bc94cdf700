"""A CUDA build of PyTorch and an AMD GPU."""

from dataclasses import replace

import pytest

from gpudoctor.model import CudaVersion, Outcome, PackageVersion, PciGpu, Python, Severity, System, Torch
from gpudoctor.testing import run_check

NVIDIA = PciGpu(address="0000:01:00.0", vendor="nvidia", device_id="2684")
AMD = PciGpu(address="0000:03:00.0", vendor="amd", device_id="744C", name="Radeon RX 7900 XTX")
CUDA = Torch(installed=True, version=PackageVersion("2.13.0+cu130"), build="cuda", cuda_version=CudaVersion(13, 0))
LINUX = System(os="linux", machine="x86_64", wsl=0, container="", pci_gpus=(AMD,), amd_gfx_targets=("gfx1100",))
PYTHON = Python(executable="/work/.venv/bin/python")


def test_found() -> None:
    finding = run_check("cuda-build-on-amd", torch=CUDA, system=LINUX, python=PYTHON).findings[0]
    assert finding.severity is Severity.ERROR
    assert finding.summary == "PyTorch 2.13.0+cu130 is built for CUDA 13.0, and the GPU is Radeon RX 7900 XTX"
    assert "https://download.pytorch.org/whl/rocm7.2" in finding.remedies[0].commands[1]


def test_an_unknown_gfx_target_is_a_warning() -> None:
    result = run_check("cuda-build-on-amd", torch=CUDA, system=replace(LINUX, amd_gfx_targets=None))
    assert [finding.severity for finding in result.findings] == [Severity.WARNING]


@pytest.mark.parametrize(
    "system",
    [
        pytest.param(replace(LINUX, pci_gpus=(AMD, NVIDIA)), id="NVIDIA too"),
        pytest.param(replace(LINUX, amd_gfx_targets=("gfx90c",)), id="no ROCm build has code for it"),
        pytest.param(replace(LINUX, pci_gpus=(), amd_gfx_targets=()), id="no AMD GPU"),
    ],
)
def test_passes(system: System) -> None:
    assert run_check("cuda-build-on-amd", torch=CUDA, system=system).outcome is Outcome.PASSED


@pytest.mark.parametrize(
    ("torch", "system", "reason"),
    [
        pytest.param(Torch(build="rocm"), LINUX, "PyTorch is not a CUDA build", id="ROCm build"),
        pytest.param(Torch(), LINUX, "torch.build is unknown", id="build unknown"),
        pytest.param(CUDA, System(), "system.pci_gpus is unknown", id="bus unknown"),
    ],
)
def test_skipped(torch: Torch, system: System, reason: str) -> None:
    result = run_check("cuda-build-on-amd", torch=torch, system=system)
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, reason)
