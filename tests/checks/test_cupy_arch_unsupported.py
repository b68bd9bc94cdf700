"""The architectures that CuPy's NVRTC compiles for against the compute capability of each device."""

from __future__ import annotations

from typing import Any

import pytest

from gpudoctor.model import (
    ComputeCapability,
    CudaVersion,
    Cupy,
    CupyRuntime,
    Device,
    LibraryCall,
    Outcome,
    Package,
    PackageVersion,
    Python,
    Severity,
    Symptom,
)
from gpudoctor.testing import run_check

NVRTC_12_4 = ("sm_50", "sm_60", "sm_70", "sm_75", "sm_80", "sm_86", "sm_89", "sm_90")
NVRTC_12_8 = (*NVRTC_12_4, "sm_100", "sm_120")
NVRTC_13 = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_103", "sm_120", "sm_121")


def device(capability: str, index: int = 0) -> Device:
    number = ComputeCapability.parse(capability)
    return Device(nvml_index=index, name=f"GPU {number}", compute_capability=number)


def cupy(major: int) -> Cupy:
    return Cupy(
        distributions=(Package(name=f"cupy-cuda{major}x", version=PackageVersion("14.2.0"), installer="pip"),),
        platform="cuda",
        cuda_major=major,
    )


def compiles_for(*architectures: str, version: str = "12.4") -> CupyRuntime:
    return CupyRuntime(import_error="", nvrtc_architectures=architectures, nvrtc_version=CudaVersion.parse(version))


@pytest.mark.parametrize(
    ("architectures", "capability", "outcome"),
    [
        pytest.param(NVRTC_12_4, "8.9", Outcome.PASSED, id="in the list"),
        pytest.param(NVRTC_12_4, "12.0", Outcome.FOUND, id="Blackwell before 12.8"),
        pytest.param(NVRTC_12_8, "12.0", Outcome.PASSED, id="Blackwell from 12.8 on"),
        pytest.param(NVRTC_12_8, "12.1", Outcome.PASSED, id="newer than the newest, same major"),
        pytest.param(NVRTC_12_8, "10.3", Outcome.FOUND, id="asked for by its own number, which NVRTC does not know"),
        pytest.param(NVRTC_13, "7.0", Outcome.FOUND, id="Volta on CUDA 13"),
        pytest.param(NVRTC_13, "7.5", Outcome.PASSED, id="Turing on CUDA 13"),
    ],
)
def test_by_what_nvrtc_says(architectures: tuple[str, ...], capability: str, outcome: Outcome) -> None:
    result = run_check(
        "cupy-arch-unsupported", cupy_runtime=compiles_for(*architectures), devices=(device(capability),)
    )
    assert result.outcome is outcome


@pytest.mark.parametrize(
    ("sections", "capability", "outcome"),
    [
        pytest.param({"cupy": cupy(13)}, "6.1", Outcome.FOUND, id="no NVRTC of CUDA 13 has Pascal"),
        pytest.param({"cupy": cupy(13)}, "8.6", Outcome.PASSED, id="every one has Ampere"),
        pytest.param({"cupy": cupy(12)}, "3.7", Outcome.FOUND, id="no NVRTC of CUDA 12 has Kepler"),
        pytest.param({"cupy": cupy(12)}, "12.0", Outcome.PASSED, id="a newer NVRTC of CUDA 12 has Blackwell"),
        pytest.param(
            {
                "cupy": cupy(12),
                "python": Python(
                    packages=(Package(name="nvidia-cuda-nvrtc-cu12", version=PackageVersion("12.4.127")),)
                ),
            },
            "12.0",
            Outcome.FOUND,
            id="the wheel's NVRTC is older",
        ),
    ],
)
def test_from_disk(sections: dict[str, Any], capability: str, outcome: Outcome) -> None:
    assert run_check("cupy-arch-unsupported", devices=(device(capability),), **sections).outcome is outcome


def test_finding_and_command() -> None:
    (finding,) = run_check("cupy-arch-unsupported", cupy=cupy(13), devices=(device("6.1"),)).findings
    assert finding.severity is Severity.ERROR
    assert finding.summary == "NVRTC of CUDA 13 compiles for sm_75 to sm_121, which does not include GPU 6.1 (sm_61)"
    assert finding.remedies[0].commands[:2] == (
        "python -m pip uninstall -y cupy-cuda13x",
        "python -m pip install 'cupy-cuda12x[ctk]'",
    )


def test_another_gpu_that_runs_makes_it_a_warning() -> None:
    devices = (device("8.6"), device("6.1", 1))
    (finding,) = run_check("cupy-arch-unsupported", cupy=cupy(13), devices=devices).findings
    assert (finding.severity, finding.facts[1]) == (Severity.WARNING, "devices[1].compute_capability")


def test_the_message_of_nvrtc_alone() -> None:
    error = "NVRTC_ERROR_INVALID_OPTION (5): nvrtc: error: invalid value for --gpu-architecture (-arch)"
    runtime = CupyRuntime(import_error="", calls=(LibraryCall(library="elementwise", error=error),))
    (finding,) = run_check("cupy-arch-unsupported", cupy_runtime=runtime, devices=(device("12.0"),)).findings
    assert all(text in finding.summary for text in ("GPU 12.0 (sm_120)", "CUDA 12.8", "--gpu-architecture"))


def test_a_cupy_that_works_passes() -> None:
    calls = (LibraryCall(library="elementwise", relative_error=0.0),)
    runtime = CupyRuntime(import_error="", nvrtc_architectures=NVRTC_12_4, calls=calls)
    result = run_check("cupy-arch-unsupported", cupy_runtime=runtime, devices=(device("12.0"),))
    assert result.outcome is Outcome.PASSED


@pytest.mark.parametrize(
    ("sections", "reason"),
    [
        pytest.param({"cupy": cupy(13)}, "devices[0].compute_capability is unknown", id="the devices"),
        pytest.param(
            {"cupy_runtime": CupyRuntime(import_error=""), "devices": (device("8.6"),)},
            "cupy_runtime.nvrtc_architectures is unknown",
            id="the compiler",
        ),
        pytest.param({"cupy": cupy(13), "devices": ()}, "there is no NVIDIA GPU", id="no GPU"),
        pytest.param({"cupy": Cupy(distributions=())}, "CuPy is not installed", id="no CuPy"),
    ],
)
def test_skipped(sections: dict[str, Any], reason: str) -> None:
    result = run_check("cupy-arch-unsupported", **sections)
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, reason)


def test_the_gpu_that_the_report_names_decides() -> None:
    error = "nvrtc: error: invalid value for --gpu-architecture (-arch)"
    message = Symptom(kind="nvrtc-architecture-device", text="GTX 1080", names={"device": "GTX 1080"})
    runtime = CupyRuntime(import_error="", device_error=error)
    (finding,) = run_check("cupy-arch-unsupported", cupy_runtime=runtime, symptoms=(message,)).findings
    assert "which needs CUDA 12.9 or older" in finding.summary
    assert "cupy-cuda12x" in " ".join(finding.remedies[0].commands)


@pytest.mark.parametrize(
    ("names", "which"),
    [
        pytest.param(("RTX 5080",), " for RTX 5080 (sm_120), which needs CUDA 12.8 or newer", id="one"),
        pytest.param(("RTX 5080", "Tesla V100"), "", id="two: which of them is not known"),
        pytest.param((), "", id="none"),
    ],
)
def test_a_gpu_that_the_report_only_names(names: tuple[str, ...], which: str) -> None:
    symptoms = tuple(Symptom(kind="nvidia-gpu-named", text=name, library="") for name in names)
    runtime = CupyRuntime(import_error="", device_error="CUDA_ERROR_INVALID_SOURCE: device kernel image is invalid")
    (finding,) = run_check("cupy-arch-unsupported", cupy_runtime=runtime, symptoms=symptoms).findings
    assert finding.summary.startswith(f"CuPy cannot compile{which}:")


def test_the_architecture_that_cupy_asked_for() -> None:
    option = Symptom(
        kind="nvrtc-architecture-option", text="-arch=compute_52", library="nvrtc", names={"capability": "5.2"}
    )
    runtime = CupyRuntime(import_error="", device_error="nvrtc: error: invalid value for --gpu-architecture (-arch)")
    (finding,) = run_check("cupy-arch-unsupported", cupy_runtime=runtime, symptoms=(option,)).findings
    assert finding.summary.startswith("CuPy cannot compile for the GPU (sm_52), which needs CUDA 12.9 or older")
