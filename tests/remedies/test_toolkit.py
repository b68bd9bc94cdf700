"""The CUDA toolkit that compiles extensions."""

import pytest

from gpudoctor.model import ComputeCapability, CudaVersion, Device, Fix, Pytorch, System, Toolkit, ToolkitInstall
from gpudoctor.remedies.toolkit import name_to_cmake, use_toolkit
from tests.remedies.made import made

NONE = Pytorch()
UBUNTU = System(os="linux", distribution="ubuntu")
HOME = ('export PATH="$CUDA_HOME/bin:$PATH"', "nvcc --version")


def install(path: str, *version: int, nvcc: bool = True) -> ToolkitInstall:
    return ToolkitInstall(path=path, version=CudaVersion(*version), has_nvcc=nvcc)


def commands(*installs: ToolkitInstall, cuda: CudaVersion | None, system: System = UBUNTU) -> tuple[str, ...]:
    return use_toolkit(cuda=cuda, toolkit=Toolkit(toolkits=installs), python=None, system=system).commands


@pytest.mark.parametrize(
    ("installs", "home"),
    [
        ((install("/a", 12, 4), install("/b", 12, 6)), "/a"),
        ((install("/b", 12, 1), install("/c", 12, 6)), "/c"),
        ((install("/a", 12, 4, nvcc=False), install("/b", 12, 6)), "/b"),
    ],
)
def test_a_toolkit_that_is_here_and_has_nvcc(installs: tuple[ToolkitInstall, ...], home: str) -> None:
    assert commands(*installs, cuda=CudaVersion(12, 4)) == (f"export CUDA_HOME={home}", "printenv CUDA_HOME")


@pytest.mark.parametrize("installs", [(), (install("/a", 13, 0),), (install("/a", 12, 4, nvcc=False),)])
def test_none_that_fits(installs: tuple[ToolkitInstall, ...]) -> None:
    assert commands(*installs, cuda=CudaVersion(12, 4)) == (
        "sudo apt-get install --yes cuda-toolkit-12-4",
        "export CUDA_HOME=/usr/local/cuda-12.4",
        *HOME,
    )


def test_another_distribution_is_left_to_its_own_packages() -> None:
    found = commands(cuda=CudaVersion(12, 4), system=System(os="linux", distribution="fedora"))
    assert found == ("export CUDA_HOME=/usr/local/cuda-12.4", *HOME)


def test_windows() -> None:
    first, second = commands(cuda=CudaVersion(12, 4), system=System(os="windows"))
    assert first == r"$env:CUDA_HOME = 'C:\Program Files\NVIDIA GPU Computing Toolkit\CUDA\v12.4'"
    assert second == r"& $env:CUDA_HOME\bin\nvcc --version"


def test_no_torch_is_built_for_an_unknown_major() -> None:
    nvcc = CudaVersion(99, 0)
    assert made(Fix("torch-for-toolkit", nvcc=nvcc), system=UBUNTU, pytorch=NONE) == ()


def test_the_torch_for_the_toolkit_is_the_newest_that_it_can_compile_for() -> None:
    nvcc = CudaVersion(12, 7)
    (remedy,) = made(Fix("torch-for-toolkit", nvcc=nvcc), system=UBUNTU, pytorch=NONE)
    assert "/whl/cu126" in remedy.commands[0]


def test_cmake_gets_every_architecture_once() -> None:
    devices = tuple(
        Device(nvml_index=n, compute_capability=ComputeCapability(*c)) for n, c in enumerate([(9, 0), (8, 6), (9, 0)])
    )
    assert name_to_cmake(devices).commands[-1].endswith("-DCMAKE_CUDA_ARCHITECTURES='86;90'")
    assert name_to_cmake(None).commands[-1].endswith("-DCMAKE_CUDA_ARCHITECTURES='86'")
