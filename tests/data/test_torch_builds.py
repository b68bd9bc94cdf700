"""The CUDA builds of PyTorch and what belongs to them."""

import pytest

from gpudoctor.data.capabilities import toolkit_architectures
from gpudoctor.data.rocm import rocm_builds
from gpudoctor.data.torch_builds import torch_builds, torch_companions, torch_releases
from gpudoctor.model import CudaVersion


def variants(release: str) -> list[str]:
    return [build.variant for build in torch_builds(release)]


def test_variants_of_a_release() -> None:
    assert variants("2.13") == ["cu126", "cu130", "cu132"]
    assert variants("2.6") == ["cu118", "cu124", "cu126"]


def test_a_release_outside_the_table_has_no_builds() -> None:
    assert torch_builds("2.99") == ()


def test_all_builds_stand_oldest_release_first() -> None:
    releases = [tuple(map(int, build.release.split("."))) for build in torch_builds()]
    assert releases == sorted(releases)
    assert (releases[0], releases[-1]) == ((1, 2), (2, 15))


def test_a_build() -> None:
    (build,) = [build for build in torch_builds("2.14") if build.variant == "cu130"]
    assert (build.version, build.cuda, build.pypi_default) == ("2.14.1", CudaVersion(13, 0), True)
    assert build.architectures == ("sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120")
    assert build.platform_architectures["linux_aarch64"] == ("sm_80", "sm_90", "sm_100", "sm_110", "sm_120")
    assert "3.12" in build.pythons["linux_x86_64"]
    assert build.source


def test_a_build_that_only_a_script_names_is_not_known_to_be_available() -> None:
    available = {build.variant: build.available for build in torch_builds("2.15")}
    assert available == {"cu130": True, "cu132": True, "cu134": None}


def test_one_build_of_each_release_is_the_one_on_pypi() -> None:
    for release in torch_releases():
        assert sum(build.pypi_default for build in torch_builds(release.release)) == 1, release.release


def test_the_variant_is_named_after_its_cuda_version() -> None:
    assert [build.variant for build in torch_builds() if build.variant != build.cuda.tag] == []


def test_a_toolkit_compiles_for_what_its_builds_hold() -> None:
    for build in torch_builds():
        known = toolkit_architectures(build.cuda)
        if known is not None:
            assert set(build.architectures) <= set(known), build


@pytest.mark.parametrize(
    ("torch", "torchvision", "torchaudio"),
    [
        ("2.13.0", "0.28.0", "2.11.0"),
        ("2.8.0", "0.23.0", "2.8.0"),
        ("2.0.1", "0.15.2", "2.0.2"),
        ("1.13.1", "0.14.1", "0.13.1"),
    ],
)
def test_companions(torch: str, torchvision: str, torchaudio: str) -> None:
    companions = torch_companions(torch)
    assert companions is not None
    assert (companions.torchvision, companions.torchaudio) == (torchvision, torchaudio)


def test_companions_that_were_not_verified_are_unknown() -> None:
    newest = torch_companions("2.15.0")
    assert newest is not None
    assert newest.torchvision is None
    assert torch_companions("2.99.0") is None


def test_torchvision_follows_torch_by_its_minor_number() -> None:
    for release in torch_releases():
        for version in release.versions:
            companions = torch_companions(version)
            if version.startswith("2.") and companions is not None and companions.torchvision is not None:
                minor = int(version.split(".")[1])
                assert companions.torchvision.startswith(f"0.{minor + 15}."), version


def test_rocm_builds() -> None:
    found = rocm_builds("2.8")
    assert found is not None
    assert found.variants == ("rocm6.3", "rocm6.4")
    assert found.gfx_targets is not None
    assert "gfx1100" in found.gfx_targets


def test_rocm_builds_that_were_not_verified_are_unknown() -> None:
    found = rocm_builds("2.15")
    assert found is not None
    assert (found.variants, found.gfx_targets) == (None, None)
    assert rocm_builds("2.99") is None


def test_a_python_that_a_patch_release_left_out_keeps_the_last_one_with_it() -> None:
    (release,) = (row for row in torch_releases() if row.release == "2.12")
    assert "3.13t" in release.pythons["linux_x86_64"]
    assert release.last_with == {"3.13t": "2.12.0"}
    assert release.versions[-1] == "2.12.1"
