"""PyTorch, merged from its files and from its import, and the build that it probably is."""

from __future__ import annotations

from typing import Any

import pytest

from gpudoctor.conclusions import Facts
from gpudoctor.conclusions.pytorch import merge_torch
from gpudoctor.model import (
    CudaVersion,
    Device,
    Driver,
    Environment,
    Package,
    PackageVersion,
    Python,
    Pytorch,
    Snapshot,
    Symptom,
    System,
    Torch,
    TorchRuntime,
)

WITHOUT_GPU = TorchRuntime(available=False)
WANTED = Symptom(kind="torch-gpu-wanted", text="Torch is not able to use GPU", fact="symptoms[0].text")
NO_VERSION = Symptom(kind="torch-version-cuda-none", text="torch.version.cuda is None", fact="symptoms[0].text")
ROCM = Symptom(kind="rocm-in-use", text="ROCm", fact="symptoms[1].text")
WINDOWS = System(os="windows")
PLAIN = Torch(version=PackageVersion("2.9.1"))
CUDA_BUILD = Torch(version=PackageVersion("2.9.1+cu130"))


def concluded(**sections: Any) -> Pytorch:
    found: Pytorch = Facts(Snapshot(**sections)).get("pytorch")
    return found


@pytest.mark.parametrize(
    ("version", "build", "cuda"),
    [
        ("2.13.0+cu130", "cuda", CudaVersion(13, 0)),
        ("2.13.0+cpu", "cpu", None),
        ("2.13.0+rocm7.1", "rocm", None),
        ("2.13.0", None, None),
    ],
)
def test_the_local_version_names_the_build(version: str, build: str | None, cuda: CudaVersion | None) -> None:
    found = merge_torch(Torch(version=PackageVersion(version)), TorchRuntime())
    assert (found.build, found.cuda_version) == (build, cuda)
    assert found.facts.get("build") == ("torch.version" if build else None)


def test_the_files_count_before_the_import() -> None:
    runtime = TorchRuntime(version=PackageVersion("2.8.0"), cuda_version=CudaVersion(12, 8), hip_version="")
    found = merge_torch(PLAIN, runtime)
    assert (str(found.version), found.facts["version"]) == ("2.9.1", "torch.version")
    assert (found.build, found.facts["build"]) == ("cuda", "torch_runtime.cuda_version")


@pytest.mark.parametrize(
    ("torch", "runtime", "installed", "fact"),
    [
        pytest.param(Torch(installed=True), None, True, "torch.installed", id="on disk"),
        pytest.param(PLAIN, None, True, "torch.version", id="a version"),
        pytest.param(
            None,
            TorchRuntime(import_error="No module named 'torch'"),
            False,
            "torch_runtime.import_error",
            id="no such module",
        ),
        pytest.param(
            None,
            TorchRuntime(import_error="No module named 'torch._C'"),
            True,
            "torch_runtime.import_error",
            id="a part of it is missing",
        ),
        pytest.param(None, TorchRuntime(), None, None, id="not known"),
    ],
)
def test_whether_it_is_installed(
    torch: Torch | None, runtime: TorchRuntime | None, installed: bool | None, fact: str | None
) -> None:
    found = merge_torch(torch or Torch(), runtime or TorchRuntime())
    assert (found.installed, found.facts.get("installed")) == (installed, fact)


@pytest.mark.parametrize(
    ("sections", "likely"),
    [
        pytest.param({"torch": PLAIN, "symptoms": (NO_VERSION,)}, True, id="no CUDA version"),
        pytest.param({"torch": PLAIN, "symptoms": (NO_VERSION, ROCM)}, False, id="no CUDA version, ROCm"),
        pytest.param({"torch": PLAIN, "system": WINDOWS, "symptoms": (WANTED,)}, True, id="PyPI on Windows"),
        pytest.param({"torch": PLAIN, "system": System(os="linux"), "symptoms": (WANTED,)}, False, id="PyPI on Linux"),
        pytest.param({"torch": Torch(conda_build="py312_0"), "symptoms": (WANTED,)}, True, id="conda"),
        pytest.param({"torch": PLAIN, "system": WINDOWS}, False, id="nobody asks for CUDA"),
        pytest.param(
            {"torch": PLAIN, "system": WINDOWS, "symptoms": (WANTED,), "driver": Driver(nvml_error="not found")},
            False,
            id="the driver explains it",
        ),
        pytest.param(
            {
                "torch": PLAIN,
                "system": WINDOWS,
                "symptoms": (WANTED,),
                "environment": Environment(variables={"CUDA_VISIBLE_DEVICES": "-1"}),
            },
            False,
            id="the GPU is hidden",
        ),
        pytest.param(
            {
                "torch": PLAIN,
                "system": WINDOWS,
                "symptoms": (WANTED,),
                "devices": (Device(nvml_index=0, mig_enabled=True),),
            },
            False,
            id="MIG explains it",
        ),
        pytest.param(
            {"torch": PLAIN, "system": WINDOWS, "torch_runtime": TorchRuntime(available=True), "symptoms": (WANTED,)},
            False,
            id="CUDA is available",
        ),
    ],
)
def test_a_build_for_the_cpu_is_inferred(sections: dict[str, Any], likely: bool) -> None:
    found = concluded(**{"torch_runtime": WITHOUT_GPU, "contradictions": (), **sections})
    assert found.build == ("cpu" if likely else None)
    assert found.build_read is None
    assert ("build" in found.likely) is likely


def test_a_wheel_of_pypi_on_windows_is_for_the_cpu_if_a_program_asks_for_cuda() -> None:
    said = Symptom(kind="cuda-not-available", text="CUDA not available", fact="symptoms[0].text")
    python = Python(packages=(Package(name="torch", version=PackageVersion("2.9.1")),))
    found = concluded(system=WINDOWS, python=python, torch_runtime=WITHOUT_GPU, symptoms=(said,), contradictions=())
    assert (found.build, found.facts["build"]) == ("cpu", "torch_runtime.available")
    local = Python(packages=(Package(name="torch", version=PackageVersion("2.9.1+cu130")),))
    assert concluded(system=WINDOWS, python=local, torch_runtime=WITHOUT_GPU, symptoms=(said,)).build is None


@pytest.mark.parametrize(
    ("kinds", "available"), [(("about-numba",), None), (("about-numba", "about-torch-named"), False)]
)
def test_numba_has_a_function_of_the_same_name(kinds: tuple[str, ...], available: bool | None) -> None:
    symptoms = tuple(Symptom(kind=kind, text="x", fact=f"symptoms[{n}].text") for n, kind in enumerate(kinds))
    assert concluded(torch_runtime=WITHOUT_GPU, symptoms=symptoms).available is available


def test_a_build_that_was_read_is_certain() -> None:
    found = concluded(torch=CUDA_BUILD, torch_runtime=WITHOUT_GPU, system=WINDOWS, symptoms=(WANTED,))
    assert (found.build_read, found.variant, dict(found.likely)) == ("cuda", "cu130", {})


@pytest.mark.parametrize(
    ("kind", "likely"),
    [
        ("no-gpu-in-vm", False),
        ("nvidia-smi-not-found", False),
        ("nvidia-smi-no-devices", False),
        ("kernel-module-not-found", False),
        ("nouveau-reported", False),
        ("cuda-lost-after-suspend", False),
        ("asks-words", True),
    ],
)
def test_what_shows_why_there_is_no_gpu_says_nothing_of_the_build(kind: str, likely: bool) -> None:
    symptoms = (WANTED, Symptom(kind=kind, text="x", fact="symptoms[1].text"))
    found = concluded(torch=PLAIN, system=WINDOWS, torch_runtime=WITHOUT_GPU, contradictions=(), symptoms=symptoms)
    assert (found.build == "cpu") is likely
