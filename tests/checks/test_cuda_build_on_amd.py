"""A CUDA build of PyTorch and an AMD GPU."""

from dataclasses import replace

import pytest

from gpudoctor.model import CudaVersion, Outcome, PackageVersion, PciGpu, Python, Severity, Symptom, System, Torch
from gpudoctor.testing import run_check

NVIDIA = PciGpu(address="0000:01:00.0", vendor="nvidia", device_id="2684")
AMD = PciGpu(address="0000:03:00.0", vendor="amd", device_id="744C", name="Radeon RX 7900 XTX")
CUDA = Torch(installed=True, version=PackageVersion("2.13.0+cu130"), build="cuda", cuda_version=CudaVersion(13, 0))
LINUX = System(os="linux", machine="x86_64", wsl=0, container="", pci_gpus=(AMD,), amd_gfx_targets=("gfx1100",))
PYTHON = Python(executable="/work/.venv/bin/python")


def test_found() -> None:
    finding = run_check("cuda-build-on-amd", torch=CUDA, system=LINUX, python=PYTHON).findings[0]
    assert finding.severity is Severity.ERROR
    assert finding.summary == "PyTorch 2.13.0+cu130 is built for CUDA 13.0, but the GPU is Radeon RX 7900 XTX"
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


def said(kind: str, text: str = "as printed", **names: str) -> Symptom:
    return Symptom(kind=kind, text=text, names=names)


ASKS = Symptom(kind="asks-for-cuda", text="Found no NVIDIA driver")
RADEON = Symptom(kind="amd-gpu-named", text="Radeon RX 6800", names={"device": "Radeon RX 6800"})


def test_a_report_of_an_amd_gpu_that_asks_for_cuda() -> None:
    (finding,) = run_check("cuda-build-on-amd", symptoms=(ASKS, RADEON)).findings
    assert finding.severity is Severity.ERROR
    assert finding.summary == "PyTorch asks for NVIDIA's CUDA, but the GPU is Radeon RX 6800 (gfx1030)"
    assert any("https://download.pytorch.org/whl/rocm" in command for command in finding.remedies[0].commands)


def test_a_cpu_build_is_not_called_a_cuda_build() -> None:
    torch = Torch(installed=True, version=PackageVersion("2.4.1+cpu"), build="cuda")
    sections = {"symptoms": (ASKS, RADEON), "torch": torch, "contradictions": ()}
    (finding,) = run_check("cuda-build-on-amd", **sections).findings
    assert finding.summary.startswith("A program asks for NVIDIA's CUDA")
    amd = PciGpu(address="0000:03:00.0", vendor="amd", device_id="73BF")
    (finding,) = run_check("no-nvidia-gpu", system=System(pci_gpus=(amd,)), **sections).findings
    assert "2.4.1+cpu" not in finding.summary


@pytest.mark.parametrize(
    "symptoms",
    [
        pytest.param((ASKS,), id="no AMD GPU named"),
        pytest.param((ASKS, said("amd-gpu-named", "AMD Radeon Graphics")), id="graphics part of a processor"),
        pytest.param((ASKS, RADEON, said("nvidia-gpu-named", "RTX 3060")), id="NVIDIA GPU too"),
        pytest.param((RADEON,), id="nothing asks for CUDA"),
    ],
)
def test_other_reports_are_not_of_another_vendor(symptoms: tuple[Symptom, ...]) -> None:
    assert run_check("cuda-build-on-amd", symptoms=symptoms).outcome is Outcome.SKIPPED


def test_the_words_amd_gpu_are_enough_if_nothing_names_another() -> None:
    told = said("amd-gpu-reported", "I have an AMD GPU")
    (finding,) = run_check("cuda-build-on-amd", symptoms=(ASKS, told)).findings
    assert finding.severity is Severity.ERROR
    assert finding.facts == ("symptoms[0].text", "symptoms[1].text")
    assert "https://download.pytorch.org/whl/rocm" in " ".join(finding.remedies[0].commands)
    nvidia = said("nvidia-gpu-named", "RTX 3060")
    assert run_check("cuda-build-on-amd", symptoms=(ASKS, told, nvidia)).outcome is not Outcome.FOUND


@pytest.mark.parametrize(
    ("kind", "outcome"),
    [
        ("asks-for-cuda", Outcome.FOUND),
        ("torch-no-driver", Outcome.FOUND),
        ("torch-not-compiled-with-cuda", Outcome.FOUND),
        ("cuda-insufficient-driver", Outcome.FOUND),
        ("cuda-out-of-memory", Outcome.SKIPPED),
    ],
)
def test_what_asks_for_cuda(kind: str, outcome: Outcome) -> None:
    assert run_check("cuda-build-on-amd", symptoms=(said(kind), RADEON)).outcome is outcome
