"""Which build of PyTorch fits a machine."""

from gpudoctor.data.torch_builds import torch_builds
from gpudoctor.model import CudaVersion, PackageVersion, Torch
from gpudoctor.remedies.torch_choice import Choice, Machine, choose, choose_for_older_driver, fits


def test_a_build_for_older_drivers_is_of_an_older_major() -> None:
    (build,) = [build for build in torch_builds("2.14") if build.variant == "cu130"]
    older = choose_for_older_driver(Choice(build=build, version="2.14.1"), Machine(platform="linux_x86_64"))
    assert older is not None
    assert older.cuda.major == 12


def test_a_build_fits_the_cuda_version_that_is_asked_for() -> None:
    wanted = Machine(platform="linux_x86_64", cuda=CudaVersion(13, 0))
    assert [build.variant for build in torch_builds("2.14") if fits(build, wanted)] == ["cu130"]


def test_a_build_fits_the_c_library() -> None:
    (build,) = [build for build in torch_builds("2.14") if build.variant == "cu130"]
    assert [fits(build, Machine(platform="linux_x86_64", glibc=glibc)) for glibc in ((2, 27), (2, 28), (), None)] == [
        False,
        True,
        False,
        True,
    ]


def test_the_last_patch_release_with_a_wheel_for_this_python() -> None:
    torch = Torch(version=PackageVersion("2.12.1"))
    versions = []
    for python in ("3.13", "3.13t", "3.14t"):
        choice = choose(Machine(platform="linux_x86_64", python=python), torch)
        assert choice is not None
        versions.append(choice.version)
    assert versions == ["2.12.1", "2.12.0", "2.12.1"]
