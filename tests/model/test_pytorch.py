"""What is said of a PyTorch, and the paths of its facts."""

import pytest

from gpudoctor.model import CudaVersion, PackageVersion, Pytorch

VERSION = PackageVersion("2.6.0")
CUDA = CudaVersion(12, 4)


@pytest.mark.parametrize(
    ("pytorch", "variant"),
    [
        (Pytorch(build="cuda", cuda_version=CUDA), "cu124"),
        (Pytorch(build="cuda"), ""),
        (Pytorch(build="cpu"), "cpu"),
        (Pytorch(build="cpu", cuda_version=CUDA), "cpu"),
        (Pytorch(build="rocm"), ""),
        (Pytorch(cuda_version=CUDA), ""),
    ],
)
def test_the_variant(pytorch: Pytorch, variant: str) -> None:
    assert pytorch.variant == variant


@pytest.mark.parametrize(
    ("pytorch", "described"),
    [
        (Pytorch(version=VERSION), "2.6.0"),
        (Pytorch(version=VERSION, cuda_version=CUDA, cxx11_abi=False), "2.6.0 (CUDA 12.4), C++11 ABI off"),
        (Pytorch(version=VERSION, cxx11_abi=True), "2.6.0, C++11 ABI on"),
    ],
)
def test_a_version_with_what_extensions_are_built_for(pytorch: Pytorch, described: str) -> None:
    assert pytorch.described == described


def test_names() -> None:
    assert (Pytorch(version=VERSION).label, Pytorch().label) == ("PyTorch 2.6.0", "PyTorch")
    assert (Pytorch(version=VERSION).subject, Pytorch().subject) == ("torch 2.6.0", "torch")


@pytest.mark.parametrize(
    ("error", "lacking"),
    [("No module named 'torch'", True), ("No module named 'torch._C'", False), ("", False), (None, False)],
)
def test_whether_there_is_no_such_module(error: str | None, lacking: bool) -> None:
    assert Pytorch(import_error=error).lacks_module is lacking
