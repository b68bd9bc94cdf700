"""For which CUDA CuPy is, by the library that it misses and by the distribution that a report names."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpudoctor.conclusions import Facts
from gpudoctor.conclusions.cupy_mismatch import exact_cuda, is_for, named_distribution
from gpudoctor.model import (
    CudaVersion,
    Cupy,
    CupyMismatches,
    CupyRuntime,
    LibraryCall,
    Package,
    PackageVersion,
    Python,
    SharedLibrary,
    Snapshot,
    Symptom,
    Toolkit,
    ToolkitInstall,
    Torch,
)
from gpudoctor.symptoms.facts import with_symptoms


@pytest.mark.parametrize(
    ("library", "cuda"),
    [
        ("libnvrtc.so.11.1", CudaVersion(11, 1)),
        ("libnvrtc.so.9.0", CudaVersion(9, 0)),
        ("libnvrtc.so.11.2", None),
        ("libnvrtc.so.12", None),
        ("libcudart.so.10.2", CudaVersion(10, 2)),
        ("libcudart.so.11.0", None),
        ("libcublas.so.10", None),
        ("nvrtc64_101_0.dll", CudaVersion(10, 1)),
        ("nvrtc64_112_0.dll", None),
        ("nvrtc64_120_0.dll", None),
        ("cudart64_102.dll", CudaVersion(10, 2)),
        ("cudart64_110.dll", None),
    ],
)
def test_the_only_cuda_with_a_library_of_that_name(library: str, cuda: CudaVersion | None) -> None:
    assert exact_cuda(library) == cuda


@pytest.mark.parametrize(
    ("library", "cuda", "answer"),
    [
        ("libcublas.so.12", CudaVersion(12, 8), True),
        ("libcublas.so.12", CudaVersion(11, 8), False),
        ("libcurand.so.10", CudaVersion(12, 8), None),
        ("libnvrtc.so", CudaVersion(12, 8), None),
    ],
)
def test_whether_a_toolkit_holds_a_library(library: str, cuda: CudaVersion, answer: bool | None) -> None:
    assert is_for(library, cuda) is answer


def named(*versions: str) -> tuple[Symptom, ...]:
    kind = "cupy-distribution-named"
    return tuple(
        Symptom(kind=kind, fact="symptoms[0].text", text=f"cupy-cuda{v}", library="cupy", names={"version": v})
        for v in versions
    )


@pytest.mark.parametrize(
    ("versions", "answer"),
    [
        (("12x",), ("symptoms[0].text", "cupy-cuda12x", 12)),
        (("115",), ("symptoms[0].text", "cupy-cuda115", 11)),
        (("90",), ("symptoms[0].text", "cupy-cuda90", 9)),
        (("12x", "11x"), None),
        ((), None),
    ],
)
def test_the_only_distribution_that_a_report_names(
    versions: tuple[str, ...], answer: tuple[str, str, int] | None
) -> None:
    assert named_distribution(named(*versions)) == answer


WHEEL = Cupy(
    distributions=(Package(name="cupy-cuda12x", version=PackageVersion("13.6.0")),),
    version=PackageVersion("13.6.0"),
    platform="cuda",
    cuda_major=12,
    nvrtc_files=(),
)


def mismatches(**sections: Any) -> CupyMismatches:
    found: CupyMismatches = Facts(with_symptoms(Snapshot(**sections))).get("cupy_mismatch")
    return found


def symptom(kind: str, **names: str) -> Symptom:
    return Symptom(kind=kind, text="x", names=names)


@pytest.mark.parametrize(
    ("name", "kind"), [("cusparseCreate", "symbol"), ("hipblasCreate", "rocm-symbol"), ("rocsparse_x", "rocm-symbol")]
)
def test_a_symbol_counts_even_for_a_cupy_that_works(name: str, kind: str) -> None:
    works = CupyRuntime(import_error="", calls=(LibraryCall(library="elementwise"),))
    found = mismatches(cupy=WHEEL, cupy_runtime=works, symptoms=(symptom("cupy-symbol-missing", symbol=name),))
    assert found.by_message is not None
    assert found.by_message.kind == kind
    assert mismatches(cupy=WHEEL, cupy_runtime=works, symptoms=(symptom("cupy-driver-mismatch"),)).by_message is None


@pytest.mark.parametrize(("cupy", "kind"), [(Cupy(), "driver"), (WHEEL, None)])
def test_what_cupy_says_of_the_driver_counts_if_its_distribution_is_unknown(cupy: Cupy, kind: str | None) -> None:
    found = mismatches(cupy=cupy, symptoms=(symptom("cupy-driver-mismatch"),)).by_message
    assert (found.kind if found else None) == kind


@pytest.mark.parametrize(("nvcc", "kind"), [("11.8", "library"), ("12.8", None)])
def test_the_library_that_cupy_misses_against_nvcc(nvcc: str, kind: str | None) -> None:
    runtime = CupyRuntime(import_error="ImportError: libcublas.so.12: cannot open shared object file")
    toolkit = Toolkit(nvcc_version=CudaVersion.parse(nvcc))
    found = mismatches(cupy=Cupy(), cupy_runtime=runtime, toolkit=toolkit).by_message
    assert (found.kind if found else None) == kind
    assert found is None or found.facts == ("cupy_runtime.import_error", "toolkit.nvcc_version")


@pytest.mark.parametrize(
    ("local", "offered", "kind"), [("13.0", "12.8", "newer-libraries"), ("12.9", "12.8", None), ("13.0", "13.0", None)]
)
def test_libraries_that_are_newer_than_cupy_and_the_driver(local: str, offered: str, kind: str | None) -> None:
    runtime = CupyRuntime(local_cuda_version=CudaVersion.parse(local), driver_cuda_version=CudaVersion.parse(offered))
    found = mismatches(cupy=WHEEL, cupy_runtime=runtime).by_version
    assert (found.kind if found else None) == kind


@pytest.mark.parametrize(
    ("versions", "library", "kind"),
    [
        (("13.0",), "", "toolkit"),
        (("13.0", "12.4"), "", None),
        (("13.0",), "libnvrtc.so.12", None),
        (("13.0",), "libnvrtc.so.11.2", "toolkit"),
    ],
)
def test_toolkits_of_other_major_versions(versions: tuple[str, ...], library: str, kind: str | None) -> None:
    installs = tuple(ToolkitInstall(path="/usr/local/cuda", version=CudaVersion.parse(each)) for each in versions)
    libraries = (SharedLibrary(soname=library, path="/l"),) if library else ()
    found = mismatches(cupy=WHEEL, toolkit=Toolkit(toolkits=installs, system_libraries=libraries)).by_version
    assert (found.kind if found else None) == kind


@pytest.mark.parametrize(
    ("torch", "packages", "certain"),
    [("13.0", (), False), ("12.8", (), None), ("13.0", ("nvidia-cuda-nvrtc-cu12",), None)],
)
def test_all_else_of_another_cuda_is_only_likely(torch: str, packages: tuple[str, ...], certain: bool | None) -> None:
    found = mismatches(
        cupy=WHEEL,
        toolkit=Toolkit(nvcc_version=CudaVersion(13, 0)),
        torch=Torch(cuda_version=CudaVersion.parse(torch)),
        python=Python(packages=tuple(Package(name=name, version=PackageVersion("12.4")) for name in packages)),
    ).by_version
    assert (found.certain if found else None) is certain
    assert found is None or (found.cuda_major, found.names["other"]) == (13, "13")


def test_versions_say_nothing_of_a_cupy_that_works_or_needs_no_cuda() -> None:
    other = Toolkit(toolkits=(ToolkitInstall(path="/usr/local/cuda", version=CudaVersion(13, 0)),), system_libraries=())
    works = CupyRuntime(import_error="", calls=(LibraryCall(library="elementwise"),))
    assert mismatches(cupy=WHEEL, toolkit=other).by_version is not None
    assert mismatches(cupy=WHEEL, toolkit=other, cupy_runtime=works) == CupyMismatches()
    assert mismatches(cupy=replace(WHEEL, platform="rocm"), toolkit=other) == CupyMismatches()
