"""Which wheels of PyTorch exist."""

import pytest

from gpudoctor.data.torch_wheels import (
    cuda_variants,
    pythons_of,
    release_of,
    rocm_variants,
    torch_of,
    torch_platform,
    was_built,
)
from gpudoctor.model import PackageVersion


@pytest.mark.parametrize(
    ("os", "machine", "platform"),
    [
        ("linux", "x86_64", "linux_x86_64"),
        ("linux", "aarch64", "linux_aarch64"),
        ("linux", "ppc64le", ""),
        ("linux", None, "linux_x86_64"),
        ("windows", "AMD64", "windows_amd64"),
        ("windows", "ARM64", ""),
        ("windows", None, "windows_amd64"),
        ("darwin", "arm64", "macos_arm64"),
        ("darwin", "x86_64", "macos_x86_64"),
        ("darwin", None, None),
        (None, "x86_64", None),
    ],
)
def test_a_platform(os: str | None, machine: str | None, platform: str | None) -> None:
    assert torch_platform(os, machine) == platform


@pytest.mark.parametrize(
    ("version", "variant", "built"),
    [
        ("2.13.0", "cu130", True),
        ("2.13.1", "", True),
        ("2.13.0", "cpu", True),
        ("2.13.0", "cu118", False),
        ("2.13.0", "rocm7.1", True),
        ("2.99.0", "cpu", False),
        (None, "cu118", True),
        (None, "cu999", False),
    ],
)
def test_a_variant(version: str | None, variant: str, built: bool) -> None:
    assert was_built(None if version is None else PackageVersion(version), variant) is built


def test_nothing_is_known_of_an_unknown_release() -> None:
    assert release_of(None) is None
    assert release_of(PackageVersion("2.99.0")) is None
    assert (cuda_variants(None), rocm_variants(None)) == ((), ())


def test_the_pythons_of_a_platform_and_of_all() -> None:
    release = release_of(PackageVersion("2.15.0"))
    assert release is not None
    assert pythons_of(release, "linux_x86_64")[0] == "3.11"
    assert pythons_of(release, "linux_riscv64") == ()
    assert pythons_of(release, None)[-1] == "3.15t"


@pytest.mark.parametrize(
    ("package", "version", "torch"),
    [
        ("torch", "2.6.0+cu124", "2.6.0+cu124"),
        ("torchvision", "0.5.0", "1.4.0"),
        ("torchvision", "0.21.0+cu124", "2.6.0+cu124"),
        ("torchaudio", "0.4.0", "1.4.0"),
        ("torchvision", "9.9", None),
    ],
)
def test_the_torch_that_a_companion_belongs_to(package: str, version: str, torch: str | None) -> None:
    found = torch_of(package, PackageVersion(version))
    assert (None if found is None else str(found)) == torch
