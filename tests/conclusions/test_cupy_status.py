"""CuPy, merged from its files and from its import."""

from __future__ import annotations

import pytest

from gpudoctor.conclusions import Facts
from gpudoctor.model import (
    CudaVersion,
    Cupy,
    CupyRuntime,
    CupyStatus,
    LibraryCall,
    Package,
    PackageVersion,
    Snapshot,
)
from gpudoctor.symptoms.facts import with_symptoms


def status(runtime: CupyRuntime | None = None, cupy: Cupy | None = None) -> CupyStatus:
    concluded: CupyStatus = Facts(with_symptoms(Snapshot(cupy=cupy, cupy_runtime=runtime))).get("cupy_status")
    return concluded


@pytest.mark.parametrize(
    ("error", "version", "name"),
    [
        ("module 'cupy' has no attribute 'util'", None, "cupy.util"),
        ("No module named 'cupy.core'", None, "cupy.core"),
        ("module 'cupy' has no attribute 'cublas'", "13.1.0", "cupy.cublas"),
        ("module 'cupy' has no attribute 'cublas'", "8.0.0", ""),
        ("module 'cupy' has no attribute 'arange'", None, ""),
        ("libnvrtc.so.12: cannot open shared object file", None, ""),
    ],
)
def test_a_part_that_newer_versions_have_no_longer(error: str, version: str | None, name: str) -> None:
    cupy = Cupy(version=PackageVersion(version)) if version else None
    assert status(CupyRuntime(import_error=error), cupy).removed_part == name


@pytest.mark.parametrize(
    ("error", "answer"),
    [
        ("module 'cupy' has no attribute 'arange'", True),
        ("No module named 'cupy.cuda'", True),
        ("cannot import name '_core' from 'cupy'", True),
        ("type object 'cupy.core.core.broadcast' has no attribute '__reduce_cython__'", True),
        ("module 'cupy' has no attribute 'util'", False),
        ("No module named 'cupy'", False),
    ],
)
def test_a_folder_that_is_not_whole(error: str, answer: bool) -> None:
    assert status(CupyRuntime(import_error=error)).incomplete is answer


RAN = LibraryCall(library="elementwise", relative_error=0.0)
FAILED = LibraryCall(library="elementwise", error="CompileException")


@pytest.mark.parametrize(
    ("runtime", "answer"),
    [
        (CupyRuntime(import_error="", calls=(RAN,)), True),
        (CupyRuntime(import_error="", calls=(FAILED,)), False),
        (CupyRuntime(import_error="", calls=()), False),
        (CupyRuntime(import_error=None, calls=(RAN,)), False),
        (None, False),
    ],
)
def test_it_works_if_it_ran_a_kernel(runtime: CupyRuntime | None, answer: bool) -> None:
    assert status(runtime).works is answer


def test_its_name_is_that_of_the_distribution_for_its_cuda() -> None:
    packages = tuple(Package(name=f"cupy-cuda{n}x", version=PackageVersion("13.6.0")) for n in (11, 12))
    assert status(cupy=Cupy(distributions=packages, cuda_major=12)).name == "cupy-cuda12x 13.6.0"
    assert status(cupy=Cupy(version=PackageVersion("13.6.0"))).name == "CuPy 13.6.0"
    assert status().name == "CuPy"


def test_without_a_distribution_its_cuda_is_that_of_its_build() -> None:
    found = status(CupyRuntime(build_cuda_version=CudaVersion(12, 4)))
    assert (found.cuda_major, found.cuda_fact) == (12, "cupy_runtime.build_cuda_version")
    found = status(CupyRuntime(build_cuda_version=CudaVersion(12, 4)), Cupy(cuda_major=13))
    assert (found.cuda_major, found.cuda_fact) == (13, "cupy.cuda_major")
