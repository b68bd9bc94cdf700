"""CUDA libraries of several origins."""

from __future__ import annotations

from typing import Any

import pytest

from gpudoctor.model import (
    CudaVersion,
    CupyRuntime,
    Device,
    Driver,
    DriverVersion,
    Environment,
    LibraryCall,
    Outcome,
    Package,
    PackageVersion,
    Python,
    Severity,
    SharedLibrary,
    Symptom,
    Toolkit,
    Torch,
    TorchRuntime,
)
from gpudoctor.testing import run_check

TORCH = Torch(installed=True, version=PackageVersion("2.5.1+cu124"), build="cuda", conda_build="")
NVJITLINK = "ImportError: /s/libcusparse.so.12: undefined symbol: __nvJitLinkComplete_12_4, version libnvJitLink.so.12"
WHEELS = Python(packages=(Package(name="nvidia-cublas-cu12", version=PackageVersion("12.4.5.8")),))
GEFORCE = (Device(nvml_index=0, name="NVIDIA GeForce RTX 3090"),)
A100 = (Device(nvml_index=0, name="NVIDIA A100-SXM4-80GB"),)
STUB = "/usr/local/cuda/lib64/stubs/libcuda.so.1"
COMPAT = "/usr/local/cuda-12.9/compat/libcuda.so.1"


def on_library_path(*paths: str) -> Toolkit:
    return Toolkit(
        library_path_libraries=tuple(SharedLibrary(soname=path.rpartition("/")[2], path=path) for path in paths)
    )


@pytest.mark.parametrize(
    "runtime",
    [
        pytest.param(TorchRuntime(import_error=NVJITLINK), id="nvJitLink"),
        pytest.param(TorchRuntime(import_error="ImportError: x: undefined symbol: ncclCommRegister"), id="NCCL"),
        pytest.param(
            TorchRuntime(
                import_error="ImportError: x: undefined symbol: cublasLtGetVersion, version libcublasLt.so.11"
            ),
            id="cuBLAS",
        ),
    ],
)
def test_a_missing_symbol_of_a_cuda_library(runtime: TorchRuntime) -> None:
    (finding,) = run_check("cuda-libs-conflict", torch=TORCH, torch_runtime=runtime).findings
    assert (finding.severity, finding.facts) == (Severity.ERROR, ("torch_runtime.import_error",))
    assert finding.remedies[0].commands[0].endswith("torch==2.5.1+cu124")


def test_a_missing_symbol_in_cupy() -> None:
    runtime = CupyRuntime(calls=(LibraryCall(library="cusparse", error="OSError: undefined symbol: nvJitLinkCreate"),))
    (finding,) = run_check("cuda-libs-conflict", cupy_runtime=runtime).findings
    assert finding.facts == ("cupy_runtime.calls[0].error",)


def test_the_library_on_the_path_is_named() -> None:
    toolkit = on_library_path("/opt/cuda/lib64/libcudart.so.12", "/opt/cuda/lib64/libnvJitLink.so.12")
    (finding,) = run_check(
        "cuda-libs-conflict", torch=TORCH, torch_runtime=TorchRuntime(import_error=NVJITLINK), toolkit=toolkit
    ).findings
    assert finding.summary == (
        "__nvJitLinkComplete_12_4 is missing in libnvJitLink.so.12: "
        "LD_LIBRARY_PATH leads to /opt/cuda/lib64/libnvJitLink.so.12"
    )
    assert finding.remedies[0].commands[0] == "unset LD_LIBRARY_PATH"


@pytest.mark.parametrize(
    "error",
    [
        pytest.param("ImportError: _C.so: undefined symbol: _ZN3c104impl8GPUTraceE", id="of PyTorch's own"),
        pytest.param("ImportError: x: undefined symbol: iJIT_NotifyEvent", id="of MKL"),
        pytest.param("ImportError: libcublas.so.12: cannot open shared object file", id="a missing library"),
    ],
)
def test_another_import_error_is_none_of_this(error: str) -> None:
    result = run_check("cuda-libs-conflict", torch=TORCH, torch_runtime=TorchRuntime(import_error=error))
    assert result.outcome is Outcome.PASSED


@pytest.mark.parametrize(
    ("driver", "outcome"),
    [
        pytest.param(Driver(cuda_init_code=804), Outcome.FOUND, id="804"),
        pytest.param(Driver(cuda_init_code=34), Outcome.FOUND, id="34"),
        pytest.param(Driver(cuda_init_code=803, libcuda_path=COMPAT), Outcome.FOUND, id="803 with cuda-compat"),
        pytest.param(
            Driver(cuda_init_code=803, libcuda_path="/usr/lib/x86_64-linux-gnu/libcuda.so.1"),
            Outcome.PASSED,
            id="803 of the driver's own",
        ),
        pytest.param(Driver(cuda_init_code=0, libcuda_path=COMPAT), Outcome.PASSED, id="cuda-compat that works"),
    ],
)
def test_result_of_cuinit(driver: Driver, outcome: Outcome) -> None:
    result = run_check("cuda-libs-conflict", driver=driver, toolkit=on_library_path())
    assert result.outcome is outcome
    assert all(finding.severity is Severity.ERROR for finding in result.findings)


def test_error_804_in_the_words_of_pytorch() -> None:
    text = (
        "Unexpected error from cudaGetDeviceCount(). Error 804: forward compatibility was attempted on non supported HW"
    )
    (finding,) = run_check("cuda-libs-conflict", torch_runtime=TorchRuntime(availability_error=text)).findings
    assert "error 804" in finding.summary
    assert finding.remedies[-1].commands == ()


@pytest.mark.parametrize(
    ("path", "devices", "severity"),
    [
        pytest.param(STUB, A100, Severity.WARNING, id="a stub"),
        pytest.param(COMPAT, GEFORCE, Severity.WARNING, id="cuda-compat on GeForce"),
        pytest.param(COMPAT, A100, None, id="cuda-compat on a data centre GPU"),
        pytest.param("/usr/lib/libcuda.so.1", GEFORCE, None, id="the driver's"),
    ],
)
def test_libcuda_on_the_library_path(path: str, devices: tuple[Device, ...], severity: Severity | None) -> None:
    toolkit = on_library_path(path)
    result = run_check("cuda-libs-conflict", toolkit=toolkit, devices=devices, torch_runtime=TorchRuntime())
    assert [finding.severity for finding in result.findings] == ([] if severity is None else [severity])


@pytest.mark.parametrize(
    ("python", "severity"),
    [
        pytest.param(WHEELS, Severity.INFO, id="the wheels bring it too"),
        pytest.param(Python(packages=()), None, id="nothing else brings it"),
    ],
)
def test_a_library_path_that_works_is_advice_at_most(python: Python, severity: Severity | None) -> None:
    result = run_check(
        "cuda-libs-conflict",
        toolkit=on_library_path("/opt/cuda/lib64/libcublas.so.12"),
        python=python,
        torch=TORCH,
        torch_runtime=TorchRuntime(import_error="", available=True),
        environment=Environment(variables={"LD_LIBRARY_PATH": "/opt/cuda/lib64"}),
    )
    assert [finding.severity for finding in result.findings] == ([] if severity is None else [severity])


@pytest.mark.parametrize(
    "sections", [pytest.param({}, id="nothing"), pytest.param({"toolkit": Toolkit()}, id="the toolkit alone")]
)
def test_unknown(sections: dict[str, Any]) -> None:
    result = run_check("cuda-libs-conflict", **sections)
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, "toolkit.library_path_libraries is unknown")


MISSING = Symptom(kind="cuda-library-missing", text="x", library="loader", names={"library": "libcudart.so.11.0"})


def test_a_library_of_another_cuda_than_pytorch() -> None:
    torch = Torch(installed=True, version=PackageVersion("2.4.0+cu121"), build="cuda", cuda_version=CudaVersion(12, 1))
    (finding,) = run_check("cuda-libs-conflict", symptoms=(MISSING,), torch=torch).findings
    assert finding.severity is Severity.ERROR
    assert "libcudart.so.11.0 of CUDA 11" in finding.summary
    assert "CUDA 12.1" in finding.summary


@pytest.mark.parametrize(
    "facts",
    [
        pytest.param({"torch_runtime": TorchRuntime(import_error="ImportError: libcudart.so.11.0: x")}, id="PyTorch's"),
        pytest.param({"cupy_runtime": CupyRuntime(import_error="ImportError: libcudart.so.11.0: x")}, id="CuPy's"),
    ],
)
def test_a_library_that_another_check_is_for(facts: dict[str, Any]) -> None:
    assert run_check("cuda-libs-conflict", symptoms=(MISSING,), **facts).findings == ()


def test_wheels_of_two_cuda_versions_are_named_if_a_symbol_is_missing() -> None:
    message = Symptom(kind="cuda-symbol-missing", text="x", names={"symbol": "ncclCommRegister"})
    torch = Torch(installed=True, version=PackageVersion("2.2.0+cu121"), build="cuda", cuda_version=CudaVersion(12, 1))
    packages = tuple(
        Package(name=name, version=PackageVersion("2.19.3")) for name in ("nvidia-nccl-cu11", "nvidia-nccl-cu12")
    )
    (finding,) = run_check(
        "cuda-libs-conflict", symptoms=(message,), torch=torch, python=Python(packages=packages)
    ).findings
    assert (finding.subject, finding.facts) == ("libnccl", ("symptoms[0].text",))
    assert finding.remedies[0].commands == ("python -m pip uninstall -y nvidia-nccl-cu11",)


@pytest.mark.parametrize(
    ("driver", "check_id"),
    [("580.65.06", "cuda-libs-conflict"), ("525.60.13", "cuda-libs-conflict"), ("520.61.05", "driver-too-old")],
)
def test_a_driver_that_is_new_enough_and_called_too_old(driver: str, check_id: str) -> None:
    torch = Torch(installed=True, version=PackageVersion("2.9.0+cu128"), build="cuda", cuda_version=CudaVersion(12, 8))
    facts: dict[str, Any] = {"torch": torch, "driver": Driver(version=DriverVersion.parse(driver), cuda_init_code=35)}
    found = [name for name in ("cuda-libs-conflict", "driver-too-old") if run_check(name, **facts).findings]
    assert found == [check_id]


def test_a_probe_that_finds_another_libcuda_than_pytorch() -> None:
    torch = Torch(installed=True, version=PackageVersion("2.9.0+cu128"), build="cuda", cuda_version=CudaVersion(12, 8))
    facts: dict[str, Any] = {"torch": torch, "torch_runtime": TorchRuntime(available=True, device_count=1)}
    facts["driver"] = Driver(version=DriverVersion.parse("580.65.06"), cuda_init_code=35)
    assert len(run_check("cuda-libs-conflict", **facts).findings) == 1
    assert run_check("driver-too-old", **facts).findings == ()


def test_no_library_is_known_that_the_driver_runs() -> None:
    driver = Driver(version=DriverVersion.parse("580.65.06"), cuda_init_code=35)
    assert run_check("cuda-libs-conflict", driver=driver).findings == ()


@pytest.mark.parametrize("count", [1, 2, 5, 6])
def test_of_many_libraries_on_the_path_the_first_five_are_evidence(count: int) -> None:
    names = ("cublas", "cufft", "curand", "cusolver", "cusparse", "cublasLt")[:count]
    packages = tuple(Package(name=f"nvidia-{name.lower()}-cu12", version=PackageVersion("12.8.4.1")) for name in names)
    result = run_check(
        "cuda-libs-conflict",
        toolkit=on_library_path(*(f"/opt/cuda/lib64/lib{name}.so.12" for name in names)),
        python=Python(packages=packages),
        torch=TORCH,
        torch_runtime=TorchRuntime(import_error="", available=True),
        environment=Environment(variables={"LD_LIBRARY_PATH": "/opt/cuda/lib64"}),
    )
    (finding,) = result.findings
    assert len(finding.facts) == min(count, 5)
    assert (f" and {count - 1} more" in finding.summary) is (count > 1)
