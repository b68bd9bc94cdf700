"""Which wheels of PyTorch exist."""

import pytest

from gpudoctor.data.rocm import first_rocm_release, gfx_target, rocm_targets_after
from gpudoctor.data.torch_builds import torch_releases
from gpudoctor.data.torch_wheels import (
    companion_of,
    is_32_bit,
    newest_pythons,
    pythons_of,
    release_of,
    releases_for,
    releases_of_companion,
    torch_of,
    torch_platform,
    was_built,
)
from gpudoctor.model import PackageVersion


@pytest.mark.parametrize(
    ("os", "machine", "platform"),
    [
        ("linux", "x86_64", "linux_x86_64"),
        ("linux", "ARM64", "linux_aarch64"),
        ("windows", "AMD64", "windows_amd64"),
        ("darwin", "arm64", "macos_arm64"),
        ("linux", "ppc64le", ""),
        ("linux", None, "linux_x86_64"),
        ("darwin", None, None),
        (None, "x86_64", None),
    ],
)
def test_platform(os: str | None, machine: str | None, platform: str | None) -> None:
    assert torch_platform(os, machine) == platform


def test_a_release_and_its_pythons() -> None:
    release = release_of(PackageVersion("2.4.1+cu121"))
    assert release is not None
    assert release.release == "2.4"
    assert "3.12" in pythons_of(release, "linux_x86_64")
    assert pythons_of(release, "") == ()
    assert release_of(PackageVersion("99.0")) is None
    assert release_of(None) is None


def test_the_newest_pythons_leave_out_free_threaded_ones() -> None:
    tags = newest_pythons(torch_releases(), "linux_x86_64")
    assert tags
    assert not any(tag.endswith("t") for tag in tags)
    assert newest_pythons(torch_releases(), "") == []


@pytest.mark.parametrize(
    ("specifier", "first", "last"),
    [("==2.4.*", "2.4", "2.4"), (">=2.4,<2.6", "2.4", "2.5"), ("==2.4.1+cu121", "2.4", "2.4")],
)
def test_releases_that_a_requirement_allows(specifier: str, first: str, last: str) -> None:
    found = releases_for(specifier)
    assert (found[0].release, found[-1].release) == (first, last)


def test_a_requirement_that_cannot_be_read_allows_all() -> None:
    assert releases_for("latest") == releases_for("") == torch_releases()


@pytest.mark.parametrize(
    ("version", "variant", "built"),
    [
        ("2.4.1", "cu121", True),
        ("2.4.1", "cu130", False),
        ("2.4.1", "", True),
        (None, "cu130", True),
        (None, "cu1", False),
    ],
)
def test_variants_that_were_built(version: str | None, variant: str, built: bool) -> None:
    assert was_built(PackageVersion(version) if version else None, variant) is built


def test_companions() -> None:
    assert companion_of("torchvision", "2.4.1") == "0.19.1"
    assert companion_of("torchvision", "99.0.0") is None
    assert str(torch_of("torchvision", PackageVersion("0.19.1+cu121"))) == "2.4.1+cu121"
    assert torch_of("torchvision", PackageVersion("99.0")) is None
    assert releases_of_companion("torchvision", PackageVersion("0.19.0")) == {"2.4"}


@pytest.mark.parametrize(
    ("tag", "short"),
    [("win32", True), ("linux_i686", True), ("linux_x86_64", False), ("win_amd64", False), (None, False)],
)
def test_32_bit(tag: str | None, short: bool) -> None:
    assert is_32_bit(tag) is short


@pytest.mark.parametrize(
    ("value", "target"), [("10.3.0", "gfx1030"), ("9.0.10", "gfx90a"), ("10.3", ""), ("a.b.c", ""), (None, "")]
)
def test_the_target_of_an_override(value: str | None, target: str) -> None:
    assert gfx_target(value) == target


def test_rocm_releases_of_a_target() -> None:
    found = first_rocm_release("gfx1100")
    assert found is not None
    assert found[1].startswith("rocm")
    assert first_rocm_release("gfx1") is None
    later = rocm_targets_after((2, 0))
    assert later is not None
    assert "gfx90a" in later
    assert rocm_targets_after((99, 0)) is None


@pytest.mark.parametrize(
    ("tag", "answer"),
    [
        *((tag, True) for tag in ("win32", "linux_i686", "manylinux2014_i686", "linux_i386", "linux_armv7l")),
        *((tag, False) for tag in ("win_amd64", "linux_x86_64", "linux_aarch64", "macosx_14_0_arm64", None)),
    ],
)
def test_interpreters_without_any_wheel(tag: str | None, answer: bool) -> None:
    assert is_32_bit(tag) is answer
