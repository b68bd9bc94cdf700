"""torch-cuda-unavailable."""

from typing import Any

import pytest

from gpudoctor.model import (
    CudaVersion,
    Device,
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
        pytest.param(UNAVAILABLE, None, (), Outcome.SKIPPED, "there is no NVIDIA GPU", id="no GPU"),
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


WANTED = (Symptom(kind="torch-gpu-wanted", text="torch.cuda.is_available() is False"),)


@pytest.mark.parametrize(
    ("sections", "outcome"),
    [
        pytest.param({"torch": CUDA_BUILD, "symptoms": WANTED}, Outcome.FOUND, id="GPU unknown"),
        pytest.param({"symptoms": WANTED}, Outcome.FOUND, id="build unknown too"),
        pytest.param({"torch": CUDA_BUILD, "symptoms": ()}, Outcome.SKIPPED, id="nobody asks for CUDA"),
        pytest.param({"torch": Torch(build="cpu"), "symptoms": WANTED}, Outcome.SKIPPED, id="CPU build"),
        pytest.param({"symptoms": WANTED, "devices": ()}, Outcome.SKIPPED, id="no GPU"),
        pytest.param({"symptoms": WANTED, "system": System(os="darwin")}, Outcome.SKIPPED, id="macOS"),
    ],
)
def test_a_report_in_which_a_program_gets_no_gpu(sections: dict[str, Any], outcome: Outcome) -> None:
    result = run_check(CHECK, **{"torch_runtime": TorchRuntime(available=False), **sections})
    assert result.outcome is outcome


def test_a_program_on_the_cpu_misses_only_a_gpu_that_is_there() -> None:
    on_cpu = (Symptom(kind="torch-on-cpu", text="FP16 is not supported on CPU; using FP32"),)
    runtime = TorchRuntime(available=False)
    assert run_check(CHECK, torch_runtime=runtime, symptoms=on_cpu).outcome is Outcome.SKIPPED
    assert run_check(CHECK, torch_runtime=runtime, symptoms=on_cpu, devices=GPU).outcome is Outcome.FOUND


def test_what_a_report_leaves_open_is_found_out_first() -> None:
    runtime = TorchRuntime(available=False, availability_error="No CUDA GPUs are available")
    finding = run_check(CHECK, torch_runtime=runtime, symptoms=WANTED).findings[0]
    assert finding.summary == "PyTorch cannot use a GPU: No CUDA GPUs are available"
    first, install, visible, driver = finding.remedies
    assert first.commands[0] == "nvidia-smi"
    assert "--index-url" in install.commands[0]
    assert "CUDA_VISIBLE_DEVICES" in visible.summary
    assert "driver" in driver.summary


def test_in_a_container_the_option_is_named() -> None:
    system = System(os="linux", container="docker")
    runtime = TorchRuntime(available=False)
    finding = run_check(CHECK, torch_runtime=runtime, torch=CUDA_BUILD, symptoms=WANTED, system=system).findings[0]
    assert any("--gpus all" in f"{remedy.summary} {remedy.commands}" for remedy in finding.remedies)
