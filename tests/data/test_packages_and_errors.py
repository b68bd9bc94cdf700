"""CuPy's distributions, Xid errors, CUDA errors and environment variables."""

import pytest

from gpudoctor.data import (
    cuda_error_name,
    cuda_error_text,
    cupy_package,
    cupy_packages,
    cupy_release,
    environment_variables,
    removed_from_cupy,
    xid_meaning,
)
from gpudoctor.model import CudaVersion


def test_a_cupy_package() -> None:
    package = cupy_package("cupy-cuda11x")
    assert package is not None
    assert (package.platform, package.cuda_major, package.last_version) == ("cuda", 11, "13.6.0")
    assert (package.cuda_first, package.cuda_last) == (CudaVersion(11, 2), CudaVersion(11, 8))
    assert package.maintained is False


def test_a_cupy_package_for_a_whole_major_has_no_last_toolkit() -> None:
    package = cupy_package("cupy-cuda12x")
    assert package is not None
    assert (package.cuda_first, package.cuda_last, package.maintained) == (CudaVersion(12, 0), None, True)
    assert package.pythons is not None
    assert "3.14" in package.pythons["windows_amd64"]


@pytest.mark.parametrize(
    ("name", "platform", "major"),
    [
        ("cupy", "source", None),
        ("cupy-rocm-7-0", "rocm", None),
        ("cupy-cuda102", "cuda", 10),
        ("cupy-cuda13x", "cuda", 13),
    ],
)
def test_platforms(name: str, platform: str, major: int | None) -> None:
    package = cupy_package(name)
    assert package is not None
    assert (package.platform, package.cuda_major) == (platform, major)


def test_packages_that_hold_no_cupy_are_not_in_the_table() -> None:
    assert cupy_package("cupyx") is None
    assert len({package.name for package in cupy_packages()}) == len(cupy_packages())


def test_a_cupy_release() -> None:
    release = cupy_release(13)
    assert release is not None
    assert (release.python, release.numpy, release.cuda) == ("3.9-3.13", "1.22-2.3", "11.2-13.x")
    assert cupy_release(99) is None


def test_xid_meaning() -> None:
    fallen = xid_meaning(79)
    assert fallen is not None
    assert "fallen off the bus" in fallen.description.casefold()
    assert fallen.action
    assert xid_meaning(99999) is None


def test_cuda_errors() -> None:
    assert (cuda_error_name(999), cuda_error_text(999)) == ("cudaErrorUnknown", "unknown error")
    assert (cuda_error_name(-1), cuda_error_text(-1)) == (None, None)


def test_environment_variables() -> None:
    by_name = {variable.name: variable for variable in environment_variables()}
    assert len(by_name) == len(environment_variables())
    assert by_name["CUDA_VISIBLE_DEVICES"].pitfall
    assert {"NCCL_P2P_DISABLE", "NCCL_IB_DISABLE", "PYTHONPATH", "TORCH_CUDNN_V8_API_DISABLED"} <= set(by_name)


def test_a_part_that_cupy_has_no_longer() -> None:
    part = removed_from_cupy("cupy.util")
    assert part is not None
    assert (part.last, part.package) == (7, "cupy-cuda110")
    assert part.source.startswith("https://")
    assert removed_from_cupy("cupy.arange") is None
