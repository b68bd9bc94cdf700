"""Versions are read from the texts that tools print, and compare as numbers."""

import pytest

from gpudoctor.model import ComputeCapability, CudaVersion, DriverVersion, PackageVersion


@pytest.mark.parametrize(
    ("text", "version"),
    [("12.4", (12, 4)), ("12.4.127", (12, 4)), ("V10.0", (10, 0)), ("13", (13, 0)), (" 11.8 ", (11, 8))],
)
def test_cuda_versions(text: str, version: tuple[int, int]) -> None:
    assert CudaVersion.parse(text) == CudaVersion(*version)


@pytest.mark.parametrize("text", ["", "cu124", "twelve", "12a"])
def test_what_is_no_cuda_version(text: str) -> None:
    with pytest.raises(ValueError, match="not a CUDA version"):
        CudaVersion.parse(text)


def test_the_number_that_cuda_codes_a_version_as() -> None:
    assert CudaVersion.from_number(12040) == CudaVersion(12, 4)
    assert CudaVersion.from_number(11080) == CudaVersion(11, 8)


def test_a_minor_version_above_nine_is_newer() -> None:
    assert CudaVersion(12, 10) > CudaVersion(12, 9)
    assert DriverVersion.parse("535.129.03") > DriverVersion.parse("535.54.03")


@pytest.mark.parametrize("text", ["535.129.03", "580.65.06", "450.80.02", "470.57.02", "535"])
def test_a_driver_version_keeps_its_text(text: str) -> None:
    assert str(DriverVersion.parse(text)) == text


def test_the_branch_of_a_driver() -> None:
    assert DriverVersion.parse("535.129.03").branch == "R535"


@pytest.mark.parametrize(
    ("text", "capability"),
    [("8.6", (8, 6)), ("sm_86", (8, 6)), ("sm_120", (12, 0)), ("compute_90", (9, 0)), ("sm_90a", (9, 0))],
)
def test_compute_capabilities(text: str, capability: tuple[int, int]) -> None:
    assert ComputeCapability.parse(text) == ComputeCapability(*capability)


def test_the_parts_of_a_package_version() -> None:
    version = PackageVersion("2.13.0+cu130")
    assert (version.release, version.public, version.local, version.minor_release) == (
        (2, 13, 0),
        "2.13.0",
        "cu130",
        "2.13",
    )
    assert PackageVersion("nightly").release == ()
