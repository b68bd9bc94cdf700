"""The CUDA libraries and headers that CuPy calls."""

from __future__ import annotations

from typing import Any

import pytest

from gpudoctor.model import (
    CupyRuntime,
    Device,
    LibraryCall,
    Outcome,
    PackageVersion,
    Severity,
    Symptom,
    System,
)
from gpudoctor.testing import run_check

L4 = Device(nvml_index=0, name="NVIDIA L4")


def fails(library: str, error: str) -> CupyRuntime:
    return CupyRuntime(
        import_error="", version=PackageVersion("14.2.0"), calls=(LibraryCall(library=library, error=error),)
    )


@pytest.mark.parametrize(
    ("runtime", "summary"),
    [
        pytest.param(
            fails("cublas", "ImportError: libcublas.so.12: cannot open shared object file: No such file or directory"),
            "CuPy cannot load libcublas.so.12",
            id="cuBLAS",
        ),
        pytest.param(
            CupyRuntime(import_error="ImportError: libcudart.so.11.0: cannot open shared object file"),
            "CuPy cannot load libcudart.so.11.0",
            id="the runtime, on import",
        ),
        pytest.param(
            fails("elementwise", 'catastrophic error: cannot open source file "vector_types.h"'),
            "CuPy has no CUDA headers to compile its kernels with: vector_types.h is not found",
            id="a header",
        ),
        pytest.param(
            fails("elementwise", "RuntimeError: CUDA is not found."),
            "CuPy finds no CUDA toolkit and no wheels of its libraries",
            id="no toolkit",
        ),
    ],
)
def test_finding(runtime: CupyRuntime, summary: str) -> None:
    (finding,) = run_check("cupy-cuda-libs-missing", cupy_runtime=runtime, devices=(L4,)).findings
    assert (finding.severity, finding.summary) == (Severity.ERROR, summary)
    assert finding.remedies[0].commands[0] == "python -m pip install 'cupy-cuda12x[ctk]'"


@pytest.mark.parametrize(
    ("runtime", "outcome"),
    [
        pytest.param(CupyRuntime(import_error="", calls=()), Outcome.PASSED, id="nothing failed"),
        pytest.param(
            CupyRuntime(import_error="ImportError: libnvrtc.so.12: cannot open shared object file"),
            Outcome.PASSED,
            id="NVRTC alone, on import",
        ),
        pytest.param(
            fails("nvrtc", "ImportError: libnvrtc.so.12: cannot open shared object file"),
            Outcome.PASSED,
            id="NVRTC alone",
        ),
        pytest.param(
            fails("elementwise", "ImportError: libcuda.so.1: cannot open shared object file"),
            Outcome.PASSED,
            id="the driver's library",
        ),
        pytest.param(
            fails("cublas", "CUBLASError: CUBLAS_STATUS_NOT_INITIALIZED"), Outcome.PASSED, id="an error of the library"
        ),
    ],
)
def test_outcome(runtime: CupyRuntime, outcome: Outcome) -> None:
    assert run_check("cupy-cuda-libs-missing", cupy_runtime=runtime, devices=(L4,)).outcome is outcome


@pytest.mark.parametrize(
    ("sections", "reason"),
    [
        pytest.param(
            {"cupy_runtime": fails("cublas", "x"), "devices": (), "system": System(pci_gpus=())},
            "there is no NVIDIA GPU for CuPy",
            id="no GPU",
        ),
        pytest.param({"cupy_runtime": CupyRuntime()}, "cupy.distributions is unknown", id="CuPy"),
        pytest.param(
            {"cupy_runtime": CupyRuntime(version=PackageVersion("14.2.0")), "devices": (L4,)},
            "cupy_runtime.import_error is unknown",
            id="the import",
        ),
    ],
)
def test_skipped(sections: dict[str, Any], reason: str) -> None:
    result = run_check("cupy-cuda-libs-missing", **sections)
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, reason)


def test_a_dll_that_windows_does_not_name() -> None:
    runtime = CupyRuntime(import_error="ImportError: DLL load failed while importing runtime: The specified module")
    (finding,) = run_check("cupy-cuda-libs-missing", cupy_runtime=runtime, system=System(os="windows")).findings
    assert finding.summary == "CuPy does not find a CUDA library that it needs: DLL load failed while importing runtime"
    assert "$env:CUDA_PATH" in " ".join(finding.remedies[-1].commands)


@pytest.mark.parametrize(
    ("calls", "outcome"),
    [
        pytest.param(None, Outcome.FOUND, id="nothing is known to work"),
        pytest.param((LibraryCall(library="cublas"),), Outcome.PASSED, id="libraries answer"),
    ],
)
def test_a_warning_about_the_path(calls: tuple[LibraryCall, ...] | None, outcome: Outcome) -> None:
    message = Symptom(kind="cupy-cuda-path-unknown", text="CUDA path could not be detected", library="cupy")
    runtime = CupyRuntime(import_error="", calls=calls)
    assert run_check("cupy-cuda-libs-missing", cupy_runtime=runtime, symptoms=(message,)).outcome is outcome


def test_a_build_from_source_that_fails() -> None:
    message = Symptom(kind="cupy-source-build", text="Failed building wheel for cupy", library="pip")
    (finding,) = run_check("cupy-cuda-libs-missing", symptoms=(message,)).findings
    assert "'cupy-cuda12x[ctk]'" in " ".join(finding.remedies[0].commands)
