"""For which CUDA CuPy is, by the library that it misses and by the distribution that a report names."""

import pytest

from gpudoctor.conclusions.cupy_mismatch import exact_cuda, is_for, named_distribution
from gpudoctor.model import CudaVersion, Symptom


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
