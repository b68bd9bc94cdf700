"""Which build of PyTorch fits a machine."""

from gpudoctor.data.torch_builds import torch_builds
from gpudoctor.model import CudaVersion
from gpudoctor.remedies.torch_choice import Choice, Machine, choose_for_older_driver, fits


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
