"""The CUDA version of the installed CuPy against driver and toolkit."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

from gpudoctor.model import (
    CudaVersion,
    Cupy,
    CupyRuntime,
    Device,
    Driver,
    DriverVersion,
    LibraryCall,
    Outcome,
    Package,
    PackageVersion,
    Python,
    Severity,
    SharedLibrary,
    Symptom,
    Toolkit,
    ToolkitInstall,
    Torch,
)
from gpudoctor.testing import run_check


def cupy(major: int, *nvrtc: str) -> Cupy:
    return Cupy(
        distributions=(Package(name=f"cupy-cuda{major}x", version=PackageVersion("14.2.0"), installer="pip"),),
        version=PackageVersion("14.2.0"),
        platform="cuda",
        cuda_major=major,
        nvrtc_files=nvrtc,
    )


def driver(version: str, cuda: str) -> Driver:
    return Driver(version=DriverVersion.parse(version), cuda_version=CudaVersion.parse(cuda))


def toolkits(*versions: str, libraries: tuple[SharedLibrary, ...] = ()) -> Toolkit:
    return Toolkit(
        toolkits=tuple(
            ToolkitInstall(path=f"/usr/local/cuda-{version}", version=CudaVersion.parse(version))
            for version in versions
        ),
        system_libraries=libraries,
        library_path_libraries=(),
    )


D550, D580 = driver("550.120", "12.4"), driver("580.65.06", "13.0")


@pytest.mark.parametrize(
    ("there", "sections", "outcome"),
    [
        pytest.param(cupy(13, "/s/libnvrtc.so.13"), {"driver": D550}, Outcome.FOUND, id="driver too old"),
        pytest.param(cupy(13, "/s/libnvrtc.so.13"), {"driver": D580}, Outcome.PASSED, id="driver of the same major"),
        pytest.param(cupy(12, "/s/libnvrtc.so.12"), {"driver": D580}, Outcome.PASSED, id="newer driver"),
        pytest.param(
            cupy(13),
            {"driver": Driver(cuda_version=CudaVersion(12, 9))},
            Outcome.FOUND,
            id="by the driver's CUDA alone",
        ),
        pytest.param(cupy(12), {"driver": D580, "toolkit": toolkits("13.0")}, Outcome.FOUND, id="toolkit of another"),
        pytest.param(
            cupy(12), {"driver": D580, "toolkit": toolkits("13.0", "12.4")}, Outcome.PASSED, id="one of several"
        ),
        pytest.param(
            cupy(12, "/s/libnvrtc.so.12"),
            {"driver": D580, "toolkit": toolkits("13.0")},
            Outcome.PASSED,
            id="its libraries come as wheels",
        ),
        pytest.param(
            cupy(12),
            {
                "driver": D580,
                "toolkit": toolkits(
                    "13.0", libraries=(SharedLibrary(soname="libnvrtc.so.12", path="/usr/lib/libnvrtc.so.12"),)
                ),
            },
            Outcome.PASSED,
            id="the loader finds them",
        ),
        pytest.param(cupy(12), {"driver": D580, "toolkit": toolkits()}, Outcome.PASSED, id="no toolkit"),
    ],
)
def test_outcome(there: Cupy, sections: dict[str, Any], outcome: Outcome) -> None:
    assert run_check("cupy-wrong-cuda-package", cupy=there, **sections).outcome is outcome


def test_finding_and_command_for_the_driver() -> None:
    (finding,) = run_check("cupy-wrong-cuda-package", cupy=cupy(13), driver=D550).findings
    assert finding.severity is Severity.ERROR
    assert finding.summary == (
        "cupy-cuda13x 14.2.0 needs a driver for CUDA 13 (580 or newer), but driver 550.120 supports CUDA 12.4"
    )
    assert finding.remedies[0].commands[:2] == (
        "python -m pip uninstall -y cupy-cuda13x",
        "python -m pip install 'cupy-cuda12x[ctk]'",
    )


def test_a_cuda_version_newer_than_the_table_names_no_driver() -> None:
    (finding,) = run_check("cupy-wrong-cuda-package", cupy=cupy(14), driver=D550).findings
    assert "None" not in finding.summary
    assert "needs a driver for CUDA 14, but" in finding.summary


def test_finding_for_the_toolkit() -> None:
    (finding,) = run_check("cupy-wrong-cuda-package", cupy=cupy(12), driver=D580, toolkit=toolkits("13.0")).findings
    assert finding.facts == ("cupy.cuda_major", "toolkit.toolkits[0].version")
    assert "CUDA 13.0 (/usr/local/cuda-13.0)" in finding.summary


def test_a_cupy_that_works_passes() -> None:
    runtime = CupyRuntime(import_error="", calls=(LibraryCall(library="elementwise", relative_error=0.0),))
    result = run_check(
        "cupy-wrong-cuda-package", cupy=cupy(12), cupy_runtime=runtime, driver=D580, toolkit=toolkits("13.0")
    )
    assert result.outcome is Outcome.PASSED


def test_a_package_for_amd() -> None:
    there = Cupy(
        distributions=(Package(name="cupy-rocm-7-0", version=PackageVersion("14.2.0")),),
        platform="rocm",
        cuda_major=None,
    )
    (finding,) = run_check(
        "cupy-wrong-cuda-package", cupy=there, devices=(Device(nvml_index=0, name="NVIDIA L4"),)
    ).findings
    assert [evidence.fact for evidence in finding.evidence] == ["cupy.platform", "devices[0].name"]


@pytest.mark.parametrize(
    ("sections", "reason"),
    [
        pytest.param({"cupy": cupy(12)}, "driver.cuda_version is unknown", id="the driver"),
        pytest.param({"cupy": Cupy(distributions=())}, "CuPy is not installed", id="none"),
        pytest.param(
            {"cupy": Cupy(distributions=(Package(name="cupy", version=PackageVersion("14.2.0")),), platform="source")},
            "cupy.cuda_major is unknown",
            id="built from source",
        ),
    ],
)
def test_skipped(sections: dict[str, Any], reason: str) -> None:
    result = run_check("cupy-wrong-cuda-package", **sections)
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, reason)


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        pytest.param("libnvrtc.so.11.2: cannot open shared object file", Outcome.FOUND, id="it finds no library"),
        pytest.param("", Outcome.PASSED, id="another toolkit disturbs nobody"),
    ],
)
def test_nvcc_of_another_major(error: str, outcome: Outcome) -> None:
    package = Package(name="cupy-cuda11x", version=PackageVersion("13.3.0"))
    result = run_check(
        "cupy-wrong-cuda-package",
        cupy=Cupy(distributions=(package,), platform="cuda", cuda_major=11),
        cupy_runtime=CupyRuntime(import_error="", device_error=error),
        toolkit=Toolkit(nvcc_version=CudaVersion(12, 4)),
        driver=Driver(cuda_version=CudaVersion(12, 4)),
    )
    assert result.outcome is outcome


def test_cupy_says_that_the_driver_does_not_fit() -> None:
    message = Symptom(kind="cupy-driver-mismatch", text="x", library="cupy")
    driver = Driver(version=DriverVersion.parse("573.91"), cuda_version=CudaVersion(12, 8))
    (finding,) = run_check("cupy-wrong-cuda-package", symptoms=(message,), driver=driver).findings
    assert "CUDA 12.8" in finding.summary
    assert "cupy-cuda12x" in " ".join(finding.remedies[0].commands)


def misses(library: str) -> CupyRuntime:
    return CupyRuntime(
        import_error=f"ImportError: {library}: cannot open shared object file: No such file or directory"
    )


@pytest.mark.parametrize(
    ("library", "nvcc", "outcome"),
    [
        pytest.param("libnvrtc.so.11.1", "11.6", Outcome.FOUND, id="a name of one minor version"),
        pytest.param("libnvrtc.so.11.2", "11.6", Outcome.SKIPPED, id="a name of all that follow"),
        pytest.param("libcudart.so.10.1", "10.2", Outcome.FOUND, id="a runtime of one minor version"),
        pytest.param("libcudart.so.11.0", "11.8", Outcome.SKIPPED, id="the runtime of every CUDA 11"),
        pytest.param("libcublas.so.12", "11.8", Outcome.FOUND, id="another major version"),
        pytest.param("libcurand.so.10", "12.4", Outcome.SKIPPED, id="a number that several CUDA versions share"),
    ],
)
def test_a_missing_library_against_nvcc(library: str, nvcc: str, outcome: Outcome) -> None:
    toolkit = Toolkit(nvcc_version=CudaVersion.parse(nvcc))
    result = run_check("cupy-wrong-cuda-package", cupy_runtime=misses(library), toolkit=toolkit)
    assert result.outcome is outcome
    if result.findings:
        assert result.findings[0].facts == ("cupy_runtime.import_error", "toolkit.nvcc_version")
        assert library in result.findings[0].summary


@pytest.mark.parametrize(("nvcc", "outcome"), [("12.1", Outcome.FOUND), ("11.7", Outcome.SKIPPED)])
def test_a_distribution_known_by_its_name_alone(nvcc: str, outcome: Outcome) -> None:
    named = Symptom(
        kind="cupy-distribution-named",
        text="cupy-cuda11x",
        library="cupy",
        names={"platform": "cuda", "version": "11x"},
    )
    result = run_check(
        "cupy-wrong-cuda-package",
        cupy_runtime=CupyRuntime(import_error="ImportError: DLL load failed while importing cublas: not found"),
        toolkit=Toolkit(nvcc_version=CudaVersion.parse(nvcc)),
        symptoms=(named,),
    )
    assert result.outcome is outcome


@pytest.mark.parametrize(
    ("local", "offered", "outcome"),
    [
        pytest.param("13.0", "12.7", Outcome.FOUND, id="newer than the driver"),
        pytest.param("13.0", "13.0", Outcome.PASSED, id="the driver runs them"),
        pytest.param("12.8", "12.7", Outcome.PASSED, id="minor versions are compatible"),
    ],
)
def test_libraries_of_a_newer_cuda_next_to_cupy(local: str, offered: str, outcome: Outcome) -> None:
    runtime = CupyRuntime(
        import_error="",
        build_cuda_version=CudaVersion(12, 9),
        local_cuda_version=CudaVersion.parse(local),
        driver_cuda_version=CudaVersion.parse(offered),
    )
    result = run_check(
        "cupy-wrong-cuda-package", cupy_runtime=runtime, driver=Driver(cuda_version=CudaVersion.parse(offered))
    )
    assert result.outcome is outcome
    if result.findings:
        assert result.findings[0].summary.endswith(
            "loads the libraries of CUDA 13.0, but the driver supports only CUDA 12.7"
        )


@pytest.mark.parametrize(
    ("torch_cuda", "wheels", "outcome"),
    [
        pytest.param("11.8", (), Outcome.FOUND, id="PyTorch and nvcc of one other"),
        pytest.param("12.4", (), Outcome.PASSED, id="PyTorch of CuPy's"),
        pytest.param("11.8", ("nvidia-cuda-nvrtc-cu12",), Outcome.PASSED, id="NVRTC of CuPy's as a wheel"),
    ],
)
def test_everything_else_is_of_another_cuda(torch_cuda: str, wheels: tuple[str, ...], outcome: Outcome) -> None:
    there = Cupy(distributions=cupy(12).distributions, platform="cuda", cuda_major=12)
    packages = tuple(Package(name=name, version=PackageVersion("12.4.127")) for name in wheels)
    result = run_check(
        "cupy-wrong-cuda-package",
        cupy=there,
        driver=D550,
        toolkit=Toolkit(nvcc_version=CudaVersion(11, 8)),
        torch=Torch(cuda_version=CudaVersion.parse(torch_cuda)),
        python=Python(packages=packages),
    )
    assert result.outcome is outcome
    if result.findings:
        (finding,) = result.findings
        assert finding.severity is Severity.WARNING
        assert any("cupy-cuda11x" in command for command in finding.remedies[0].commands)


@pytest.mark.parametrize(
    ("symbol", "library", "what", "command"),
    [
        ("cudaMemPoolTrimTo", "libcudart.so.11.0", "CUDA", "cupy-cuda12x"),
        ("hipCreateSurfaceObject", "hip_4.2", "ROCm", "cupy-rocm-7-0"),
    ],
)
def test_a_symbol_that_the_loaded_library_lacks(symbol: str, library: str, what: str, command: str) -> None:
    message = Symptom(
        kind="cupy-symbol-missing",
        text="cupy_backends/cuda/api/runtime.so: undefined symbol",
        library="cupy",
        names={"symbol": symbol, "library": library},
    )
    (finding,) = run_check("cupy-wrong-cuda-package", symptoms=(message,)).findings
    assert all(text in finding.summary for text in (what, symbol, library))
    assert command in " ".join(finding.remedies[0].commands)


@pytest.mark.parametrize(
    ("driver", "major", "runs"),
    [
        pytest.param(Driver(), 12, None, id="unknown"),
        pytest.param(Driver(cuda_version=CudaVersion(10, 0)), 10, True, id="the first of its major version"),
        pytest.param(Driver(cuda_version=CudaVersion(9, 2)), 10, False, id="the last before"),
        pytest.param(Driver(version=DriverVersion.parse("410.48")), 10, True, id="the first driver"),
        pytest.param(Driver(version=DriverVersion.parse("396.82")), 10, False, id="the last driver before"),
    ],
)
def test_whether_a_driver_runs_programs_of_a_version(driver: Driver, major: int, runs: bool | None) -> None:
    check = import_module("gpudoctor.checks.cupy_wrong_cuda_package")
    assert check._driver_runs(driver, major) is runs
