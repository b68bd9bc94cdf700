"""cupy-unusable."""

import pytest

from gpudoctor.model import (
    Cupy,
    CupyRuntime,
    Device,
    LibraryCall,
    Outcome,
    Package,
    PackageVersion,
    Severity,
    System,
)
from gpudoctor.testing import run_check

CHECK = "cupy-unusable"
GPU = (Device(nvml_index=0, name="NVIDIA L4"),)
CUPY = Cupy(distributions=(Package(name="cupy-cuda12x", version=PackageVersion("14.2.0")),))
LIBRARIES = ("nvrtc", "elementwise", "cublas", "cufft", "curand", "cusolver", "cusparse")


def runtime(**failed: str) -> CupyRuntime:
    calls = tuple(LibraryCall(library=library, error=failed.get(library, "")) for library in LIBRARIES)
    return CupyRuntime(import_error="", version=PackageVersion("14.2.0"), device_count=1, device_error="", calls=calls)


NO_IMPORT = CupyRuntime(import_error="ImportError: libcublas.so.12: cannot open shared object file")
NO_CUPY = CupyRuntime(import_error="ModuleNotFoundError: No module named 'cupy'")


@pytest.mark.parametrize(
    ("cupy_runtime", "cupy", "devices", "outcome", "reason"),
    [
        pytest.param(runtime(), CUPY, GPU, Outcome.PASSED, "", id="all calls right"),
        pytest.param(NO_IMPORT, CUPY, GPU, Outcome.FOUND, "", id="import fails"),
        pytest.param(NO_IMPORT, None, GPU, Outcome.FOUND, "", id="import fails, packages not looked at"),
        pytest.param(runtime(nvrtc="ImportError: libnvrtc"), CUPY, GPU, Outcome.FOUND, "", id="no NVRTC"),
        pytest.param(NO_IMPORT, CUPY, (), Outcome.SKIPPED, "there is no NVIDIA GPU", id="no GPU"),
        pytest.param(NO_IMPORT, CUPY, None, Outcome.FOUND, "", id="import fails, GPU unknown"),
        pytest.param(
            CupyRuntime(import_error="", device_error="cudaErrorNoDevice: no CUDA-capable device is detected"),
            CUPY,
            None,
            Outcome.SKIPPED,
            "devices is unknown",
            id="no device, GPU unknown",
        ),
        pytest.param(
            CupyRuntime(import_error="", device_error="CUSOLVER_STATUS_INTERNAL_ERROR"),
            CUPY,
            None,
            Outcome.FOUND,
            "",
            id="a status that only a GPU gives",
        ),
        pytest.param(
            NO_CUPY, Cupy(distributions=()), GPU, Outcome.SKIPPED, "CuPy is not installed", id="not installed"
        ),
        pytest.param(NO_CUPY, None, GPU, Outcome.SKIPPED, "CuPy is not installed", id="not installed, by the error"),
        pytest.param(
            CupyRuntime(), CUPY, GPU, Outcome.SKIPPED, "cupy_runtime.import_error is unknown", id="import not tried"
        ),
        pytest.param(
            CupyRuntime(import_error="", device_error=""),
            CUPY,
            GPU,
            Outcome.SKIPPED,
            "cupy_runtime.calls is unknown",
            id="calls not tried",
        ),
        pytest.param(
            runtime(elementwise="device 0: cupy.cuda.memory.OutOfMemoryError: Out of memory allocating 512 bytes"),
            CUPY,
            GPU,
            Outcome.SKIPPED,
            "the GPU memory is full",
            id="memory full",
        ),
    ],
)
def test_outcome(
    cupy_runtime: CupyRuntime, cupy: Cupy | None, devices: tuple[Device, ...] | None, outcome: Outcome, reason: str
) -> None:
    result = run_check(CHECK, cupy_runtime=cupy_runtime, cupy=cupy, devices=devices)
    assert (result.outcome, result.reason) == (outcome, reason)


@pytest.mark.parametrize(
    ("failed", "severity"),
    [
        pytest.param({"cufft": "ImportError: libcufft"}, Severity.WARNING, id="a library that a program may not use"),
        pytest.param({"cublas": "ImportError: libcublas"}, Severity.ERROR, id="cuBLAS"),
        pytest.param({"cufft": "no", "elementwise": "no"}, Severity.ERROR, id="kernels too"),
        pytest.param({"curand": "not uniform: mean 0.9, from 0.9 to 0.9"}, Severity.ERROR, id="wrong numbers"),
    ],
)
def test_severity(failed: dict[str, str], severity: Severity) -> None:
    (finding,) = run_check(CHECK, cupy_runtime=runtime(**failed), cupy=CUPY, devices=GPU).findings
    assert finding.severity is severity
    assert [evidence.value for evidence in finding.evidence] == [failed[name] for name in LIBRARIES if name in failed]


def test_the_essential_library_is_named_first() -> None:
    failed = {"cufft": "ImportError: libcufft", "cublas": "ImportError: libcublas"}
    (finding,) = run_check(CHECK, cupy_runtime=runtime(**failed), cupy=CUPY, devices=GPU).findings
    assert finding.summary == "CuPy's call into cublas fails: ImportError: libcublas (cufft too)"


@pytest.mark.parametrize(("error", "outcome"), [(1e-10, Outcome.PASSED), (1.1e-10, Outcome.FOUND)])
def test_a_wrong_result_is_an_error(error: float, outcome: Outcome) -> None:
    calls = (LibraryCall(library="cufft", relative_error=error),)
    cupy_runtime = CupyRuntime(import_error="", device_error="", calls=calls)
    result = run_check(CHECK, cupy_runtime=cupy_runtime, cupy=CUPY, devices=GPU)
    assert result.outcome is outcome
    assert all(finding.severity is Severity.ERROR for finding in result.findings)


def test_a_device_that_cupy_does_not_find_is_named_with_its_error() -> None:
    error = "CUDARuntimeError: cudaErrorInsufficientDriver: CUDA driver version is insufficient"
    cupy_runtime = CupyRuntime(import_error="", device_count=0, device_error=error)
    (finding,) = run_check(CHECK, cupy_runtime=cupy_runtime, cupy=CUPY, devices=GPU, system=System(os="linux")).findings
    assert finding.facts == ("cupy_runtime.device_error",)
    assert finding.remedies


@pytest.mark.parametrize(
    ("error", "version", "summary", "command"),
    [
        pytest.param(
            "AttributeError: module 'cupy' has no attribute 'util'",
            None,
            "The program uses cupy.util, which CuPy no longer has since version 8: ",
            "'cupy-cuda110<8'",
            id="removed",
        ),
        pytest.param(
            "AttributeError: module 'cupy.cuda' has no attribute 'compile_with_cache'",
            "13.6.0",
            "The program uses cupy.cuda.compile_with_cache, which CuPy no longer has since version 13: ",
            "'cupy-cuda12x<13'",
            id="removed, by the version too",
        ),
        pytest.param(
            "AttributeError: module 'cupy' has no attribute 'cublas'",
            "8.0.0",
            "The CuPy folder lacks files of its version: ",
            "uninstall -y cupy cupy-cuda11x cupy-cuda12x cupy-cuda13x",
            id="a version that should have it",
        ),
        pytest.param(
            "AttributeError: module 'cupy' has no attribute 'zeros'",
            None,
            "The CuPy folder lacks files of its version: ",
            "uninstall -y cupy cupy-cuda11x cupy-cuda12x cupy-cuda13x",
            id="a part that every version has",
        ),
    ],
)
def test_a_part_that_is_not_there(error: str, version: str | None, summary: str, command: str) -> None:
    cupy = Cupy(version=PackageVersion(version)) if version else None
    (finding,) = run_check(CHECK, cupy_runtime=CupyRuntime(import_error=error), cupy=cupy).findings
    assert finding.summary.startswith(summary)
    assert command in " ".join(finding.remedies[0].commands)


def test_a_library_that_cannot_begin_may_lack_memory() -> None:
    cupy_runtime = CupyRuntime(import_error="", device_error="CUSOLVER_STATUS_NOT_INITIALIZED")
    (finding,) = run_check(CHECK, cupy_runtime=cupy_runtime, devices=GPU).findings
    assert finding.facts == ("cupy_runtime.device_error",)
    assert "free_all_blocks" in finding.remedies[0].summary


def test_ptx_that_the_driver_does_not_know() -> None:
    cupy_runtime = CupyRuntime(import_error="", device_error="CUDA_ERROR_INVALID_PTX: a PTX JIT compilation failed")
    (finding,) = run_check(CHECK, cupy_runtime=cupy_runtime, system=System(os="linux")).findings
    assert "driver" in finding.remedies[0].summary
