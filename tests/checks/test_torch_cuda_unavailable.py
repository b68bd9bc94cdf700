"""torch-cuda-unavailable."""

import pytest

from gpudoctor.model import (
    CudaVersion,
    Device,
    Outcome,
    PackageVersion,
    PciGpu,
    Python,
    Severity,
    System,
    Torch,
    TorchRuntime,
)
from gpudoctor.testing import run_check
from tests.torch_runtimes import working

CHECK = "torch-cuda-unavailable"
GPU = (Device(nvml_index=0, name="NVIDIA L4"),)
CUDA_BUILD = Torch(version=PackageVersion("2.13.0+cu130"), build="cuda")
ERROR = "RuntimeError: CUDA driver initialization failed, you might not have a CUDA gpu."
UNAVAILABLE = TorchRuntime(
    version=PackageVersion("2.13.0+cu130"),
    cuda_version=CudaVersion(13, 0),
    available=False,
    availability_error=ERROR,
)


@pytest.mark.parametrize(
    ("runtime", "torch", "devices", "outcome", "reason"),
    [
        pytest.param(UNAVAILABLE, None, GPU, Outcome.FOUND, "", id="not available"),
        pytest.param(TorchRuntime(available=False), CUDA_BUILD, GPU, Outcome.FOUND, "", id="no error named"),
        pytest.param(working(availability_error=ERROR), None, GPU, Outcome.FOUND, "", id="init() fails after all"),
        pytest.param(working(), None, GPU, Outcome.PASSED, "", id="available"),
        pytest.param(UNAVAILABLE, None, (), Outcome.SKIPPED, "no NVIDIA GPU is there", id="no GPU"),
        pytest.param(UNAVAILABLE, None, None, Outcome.SKIPPED, "devices is unknown", id="GPU unknown"),
        pytest.param(
            TorchRuntime(available=False),
            Torch(build="cpu"),
            GPU,
            Outcome.SKIPPED,
            "PyTorch is not built for CUDA",
            id="CPU build",
        ),
        pytest.param(
            TorchRuntime(available=False), None, GPU, Outcome.SKIPPED, "torch.build is unknown", id="build unknown"
        ),
        pytest.param(
            TorchRuntime(), CUDA_BUILD, GPU, Outcome.SKIPPED, "torch_runtime.available is unknown", id="not asked"
        ),
    ],
)
def test_outcome(
    runtime: TorchRuntime, torch: Torch | None, devices: tuple[Device, ...] | None, outcome: Outcome, reason: str
) -> None:
    result = run_check(CHECK, torch_runtime=runtime, torch=torch, devices=devices)
    assert (result.outcome, result.reason) == (outcome, reason)


def test_the_exact_error_and_the_gpu_are_named() -> None:
    python = Python(executable="/my env/bin/python")
    finding = run_check(CHECK, torch_runtime=UNAVAILABLE, devices=GPU, python=python).findings[0]
    assert finding.severity is Severity.ERROR
    assert finding.summary == f"PyTorch cannot use NVIDIA L4: {ERROR}"
    assert finding.facts == ("torch_runtime.available", "torch_runtime.availability_error")
    assert finding.remedies[0].commands[1].startswith("'/my env/bin/python' -c ")


def test_a_gpu_on_the_bus_is_enough() -> None:
    system = System(pci_gpus=(PciGpu(address="0000:01:00.0", vendor="nvidia", device_id="2684"),))
    finding = run_check(CHECK, torch_runtime=UNAVAILABLE, system=system).findings[0]
    assert "PCI device nvidia:2684" in finding.summary
