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


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("2.9.1", "2.13.0"),
        ("2.13.0.dev20250101", "2.13.0rc1"),
        ("2.13.0rc1", "2.13.0"),
        ("2.13.0", "2.13.0.post1"),
        ("2.13.0", "2.13.0+cpu"),
        ("2.5.0", "2.5.1-py3.12_cuda12.4"),
        ("2.5.1", "2.5.1-py3.12_cuda12.4"),
        ("2.5.1-py3.12_cuda12.4", "2.5.2"),
        ("nightly", "0.0.1"),
    ],
)
def test_package_versions_compare_as_pep_440_has_it(older: str, newer: str) -> None:
    one, two = PackageVersion(older), PackageVersion(newer)
    assert (one < two, one <= two, one == two, one > two, one >= two) == (True, True, False, False, False)
    assert max(two, one) == two


def test_equal_package_versions_keep_their_texts() -> None:
    short, long = PackageVersion("2.13"), PackageVersion("2.13.0")
    assert (short == long, hash(short) == hash(long), str(short), str(long)) == (True, True, "2.13", "2.13.0")
    assert PackageVersion("2.13") != "2.13"


@pytest.mark.parametrize(
    ("text", "release", "public", "local"),
    [
        ("2.5.1-py3.12_cuda12.4", (2, 5, 1), "2.5.1-py3.12_cuda12.4", ""),  # a build of conda
        ("2.6.0a0+git-", (2, 6, 0), "2.6.0a0", "git-"),
        ("3.13.1+", (3, 13, 1), "3.13.1", ""),  # Python built from its repository
        ("2.1.0 (conda)", (2, 1, 0), "2.1.0 (conda)", ""),
        ("1..2", (1,), "1..2", ""),
        ("+cu118", (), "", "cu118"),
        ("nightly", (), "nightly", ""),
        ("\u0663.1", (), "\u0663.1", ""),
        ("", (), "", ""),
    ],
)
def test_any_other_text_is_kept_with_the_release_that_it_starts_with(
    text: str, release: tuple[int, ...], public: str, local: str
) -> None:
    version = PackageVersion(text)
    assert (str(version), version.release, version.public, version.local) == (text, release, public, local)
    assert (version == PackageVersion(text), version < PackageVersion("9!1"), version == PackageVersion("9!1")) == (
        True,
        True,
        False,
    )


def test_a_number_without_end_is_no_fault() -> None:
    assert len(PackageVersion("9" * 5000).release) == 1


@pytest.mark.parametrize(
    ("one", "other", "agree"),
    [
        ("2.13", "2.13.0+cu130", True),
        ("2.13.0", "2.13.0+cu130", True),
        ("2", "2.13.1", True),
        ("2.13.0", "2.13.0rc1", True),
        ("2.13", "2.13.0.dev20250101+cu130", True),
        ("2.13.0+cu130", "2.13.0+CU130", True),
        ("2.5.1", "2.5.1-py3.12_cuda12.4", True),
        ("nightly", "nightly", True),
        ("2.1", "2.13", False),
        ("2.1", "2.13.0", False),
        ("2.13.0", "2.13.1", False),
        ("2.13.0+cu130", "2.13.0+cpu", False),
        ("2.13.0+cu13", "2.13.0+cu130", False),
        ("2.13.0+cu130", "2.14.0", False),
        ("2.13.0rc1", "2.13.0rc2", False),
        ("2.13.0.dev20250101", "2.13.0.dev20250102", False),
        ("1!2.13.0", "2.13.0", False),
        ("nightly", "2.13", False),
        ("nightly", "stable", False),
    ],
)
def test_a_version_that_says_less_agrees_and_another_one_does_not(one: str, other: str, agree: bool) -> None:
    assert PackageVersion(one).agrees_with(PackageVersion(other)) is agree
    assert PackageVersion(other).agrees_with(PackageVersion(one)) is agree
