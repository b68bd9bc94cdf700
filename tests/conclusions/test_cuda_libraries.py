"""CUDA's libraries: which is missing, of another version, or of another origin."""

from __future__ import annotations

from typing import Any

import pytest

from gpudoctor.conclusions import Facts
from gpudoctor.conclusions.cuda_libraries import stem_of
from gpudoctor.model import (
    CudaLibraries,
    CudaVersion,
    Device,
    Driver,
    Environment,
    Package,
    PackageVersion,
    Python,
    SharedLibrary,
    Snapshot,
    Symptom,
    Toolkit,
    Torch,
    TorchRuntime,
)
from gpudoctor.symptoms.facts import with_symptoms

COMPAT, STUB = "/usr/local/cuda/compat/libcuda.so.1", "/usr/local/cuda/lib64/stubs/libcuda.so.1"
NCCL = Symptom(kind="cuda-symbol-missing", text="x", names={"symbol": "ncclCommRegister"})


def concluded(**sections: Any) -> CudaLibraries:
    found: CudaLibraries = Facts(with_symptoms(Snapshot(**sections))).get("cuda_libraries")
    return found


def on_path(*paths: str) -> Toolkit:
    return Toolkit(
        library_path_libraries=tuple(SharedLibrary(soname=path.rpartition("/")[2], path=path) for path in paths)
    )


def wheels(*names: str) -> Python:
    return Python(packages=tuple(Package(name=name, version=PackageVersion("1")) for name in names))


@pytest.mark.parametrize(
    ("name", "stem"),
    [("libnvJitLink.so.12", "nvjitlink"), ("libcublasLt.so.12", "cublas"), ("libncclCommRegister", "nccl"), ("m", "m")],
)
def test_the_short_name_of_a_library(name: str, stem: str) -> None:
    assert stem_of(name) == stem


def test_a_symbol_names_its_library_and_the_file_that_is_loaded() -> None:
    loaded = Symptom(
        kind="cuda-library-loaded", text="x", names={"library": "libnccl.so.2", "path": "/opt/libnccl.so.2"}
    )
    symbol = concluded(symptoms=(NCCL, loaded)).symbol
    assert symbol is not None
    assert (symbol.library, symbol.stem, symbol.loaded) == ("libnccl", "nccl", "/opt/libnccl.so.2")
    assert symbol.facts == ("symptoms[0].text", "symptoms[1].text")


def test_a_symbol_and_the_file_that_the_library_path_leads_to() -> None:
    toolkit = on_path("/opt/libcublas.so.12", "/opt/libnccl.so.2")
    symbol = concluded(symptoms=(NCCL,), toolkit=toolkit).symbol
    assert symbol is not None
    assert (symbol.loaded, symbol.on_path) == ("", "/opt/libnccl.so.2")
    assert symbol.facts == ("symptoms[0].text", "toolkit.library_path_libraries[1].path")


@pytest.mark.parametrize(
    ("path", "devices", "code", "fails_on"),
    [
        (COMPAT, (Device(nvml_index=0, name="NVIDIA GeForce RTX 4090"),), None, "NVIDIA GeForce RTX 4090"),
        (COMPAT, (Device(nvml_index=0, name="NVIDIA GeForce RTX 4090"),), 0, ""),
        (COMPAT, (Device(nvml_index=0, name="NVIDIA A100-SXM4-80GB"),), None, ""),
        (STUB, None, None, "this GPU"),
        (STUB, None, 0, ""),
    ],
)
def test_another_libcuda(path: str, devices: tuple[Device, ...] | None, code: int | None, fails_on: str) -> None:
    libcuda = concluded(driver=Driver(libcuda_path=path, cuda_init_code=code), devices=devices).libcuda
    assert libcuda is not None
    assert (libcuda.path, libcuda.fact, libcuda.fails_on) == (path, "driver.libcuda_path", fails_on)


@pytest.mark.parametrize("path", ["/usr/lib/x86_64-linux-gnu/libcuda.so.1", "/opt/compatible/libcuda.so.1"])
def test_the_libcuda_of_the_driver(path: str) -> None:
    assert concluded(toolkit=on_path(path)).libcuda is None


def test_wheels_of_another_cuda_than_pytorch() -> None:
    torch = Torch(version=PackageVersion("2.6.0"), cuda_version=CudaVersion(12, 4))
    python = wheels("nvidia-nccl-cu11", "nvidia-nccl-cu12", "nvidia-ml-py", "x-cu11")
    assert concluded(python=python, torch=torch).other_wheels == ("nvidia-nccl-cu11",)
    assert concluded(python=python).other_wheels == ()


def test_libraries_before_those_of_the_wheels() -> None:
    found = concluded(toolkit=on_path("/a/libcublas.so.12", "/a/libcufft.so.11"), python=wheels("nvidia-cufft-cu12"))
    assert found.shadowing == ("/a/libcufft.so.11",)
    assert found.shadowing_facts == ("toolkit.library_path_libraries[1].path",)


def test_the_cudnn_on_the_library_path() -> None:
    found = concluded(toolkit=on_path("/a/libcublas.so.12", "/a/libcudnn.so.8"))
    assert (found.cudnn_path, found.cudnn_fact) == ("/a/libcudnn.so.8", "toolkit.library_path_libraries[1].path")


@pytest.mark.parametrize(
    ("sections", "known", "is_set"),
    [
        ({}, False, False),
        ({"toolkit": Toolkit()}, False, False),
        ({"toolkit": on_path()}, True, False),
        ({"torch_runtime": TorchRuntime()}, True, False),
        ({"environment": Environment(variables={"LD_LIBRARY_PATH": "/a"})}, False, True),
    ],
)
def test_what_is_known_of_the_library_path(sections: dict[str, Any], known: bool, is_set: bool) -> None:
    found = concluded(**sections)
    assert (found.known, found.path_is_set) == (known, is_set)


MISSING = Symptom(kind="cuda-library-missing", text="x", names={"library": "libcufft.so.11"})
SUMMARY = Symptom(kind="cuda-libraries-not-loaded-by-tensorflow", text="x", library="tensorflow")


@pytest.mark.parametrize(
    ("symptoms", "kind"),
    [
        ((MISSING,), MISSING.kind),
        ((SUMMARY, MISSING), MISSING.kind),
        ((SUMMARY,), SUMMARY.kind),
        ((SUMMARY, Symptom(kind="cudnn-not-found", text="x", names={"library": "libcudnn.so.9"})), None),
        ((MISSING, Symptom(kind="bnb-setup-failed", text="x")), None),
    ],
)
def test_the_library_that_is_missing(symptoms: tuple[Symptom, ...], kind: str | None) -> None:
    missing = concluded(symptoms=symptoms).missing
    assert (missing.kind if missing else None) == kind


def test_a_library_that_pytorch_misses_is_its_own_affair() -> None:
    runtime = TorchRuntime(import_error="ImportError: libcufft.so.11: cannot open shared object file")
    assert concluded(symptoms=(MISSING,), torch_runtime=runtime).missing is None
