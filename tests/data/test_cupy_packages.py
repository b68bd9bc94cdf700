"""The wheels of CuPy, what a release supports, and what it no longer has."""

import pytest

from gpudoctor.data.packages import cupy_pythons, cupy_release, removed_from_cupy


@pytest.mark.parametrize("name", ["cupy-cuda12x", "cupy-cuda13x"])
def test_wheels(name: str) -> None:
    pythons = cupy_pythons(name)
    assert pythons is not None
    assert set(pythons) == {"linux_x86_64", "linux_aarch64", "windows_amd64"}
    for listed in pythons.values():
        assert {"3.10", "3.14", "3.14t"} <= set(listed)
        assert not {"3.9", "3.13t", "3.15"} & set(listed)


def test_a_distribution_outside_the_table_is_unknown() -> None:
    assert cupy_pythons("cupyx") is None


@pytest.mark.parametrize(("major", "numpy"), [(8, "1.16-1.20"), (13, "1.22-2.3"), (14, "2.0-")])
def test_the_numpy_of_a_release(major: int, numpy: str) -> None:
    release = cupy_release(major)
    assert release is not None
    assert release.numpy == numpy


@pytest.mark.parametrize("major", [7, 15])
def test_a_release_outside_the_table_is_unknown(major: int) -> None:
    assert cupy_release(major) is None


def test_a_part_that_cupy_has_no_longer() -> None:
    part = removed_from_cupy("cupy.util")
    assert part is not None
    assert (part.name, part.last, part.package) == ("cupy.util", 7, "cupy-cuda110")
    assert "cupy.memoize" in part.instead
    assert removed_from_cupy("cupy.arange") is None
