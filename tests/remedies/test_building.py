"""The tools with which extensions and kernels are compiled."""

from __future__ import annotations

import pytest

from gpudoctor.model import (
    ComputeCapability,
    CudaVersion,
    Device,
    Fix,
    PackageVersion,
    Python,
    Pytorch,
    System,
    Toolkit,
    ToolkitInstall,
)
from tests.remedies.made import made, made_one

PYTHON = Python(version=PackageVersion("3.11.9"), executable="/v/bin/python", environment="venv", installer="pip")
CONDA = Python(executable="/c/bin/python", environment="conda", prefix="/c")
UBUNTU, FEDORA = System(os="linux", distribution="ubuntu"), System(os="linux", distribution="fedora")
WINDOWS = System(os="windows")
PIP = "/v/bin/python -m pip"
BUILD_TOOLS = (
    "winget install --exact --id Microsoft.VisualStudio.2022.BuildTools --override "
    '"--add Microsoft.VisualStudio.Workload.VCTools --includeRecommended --passive"'
)


@pytest.mark.parametrize(
    ("python", "package"), [(PYTHON, "python3.11-dev"), (None, "python3-dev"), (Python(), "python3-dev")]
)
def test_headers_are_those_of_the_python_that_runs(python: Python | None, package: str) -> None:
    linux, _ = made(Fix("install-python-headers"), python=python, system=UBUNTU)
    assert linux.commands == (f"sudo apt-get install --yes {package}",)


def test_on_windows_headers_are_copied() -> None:
    (remedy,) = made(Fix("install-python-headers"), python=PYTHON, system=WINDOWS)
    assert remedy.commands == ()


@pytest.mark.parametrize(
    ("python", "system", "visual_studio", "first_commands"),
    [
        (CONDA, UBUNTU, False, ["conda install --yes --prefix /c --channel conda-forge gcc gxx"]),
        (PYTHON, UBUNTU, False, ["sudo apt-get install --yes build-essential"]),
        (PYTHON, WINDOWS, False, [BUILD_TOOLS]),
        (
            PYTHON,
            None,
            True,
            [
                "sudo apt-get install --yes build-essential",
                BUILD_TOOLS,
            ],
        ),
    ],
)
def test_a_compiler(python: Python, system: System | None, visual_studio: bool, first_commands: list[str]) -> None:
    remedies = made(Fix("install-compiler", visual_studio=visual_studio), python=python, system=system)
    assert [remedy.commands[0] for remedy in remedies] == first_commands


def test_ninja_and_triton_are_packages() -> None:
    assert made_one(Fix("install-ninja"), python=PYTHON).commands == (f"{PIP} install ninja",)
    for system, package in ((UBUNTU, "triton"), (WINDOWS, "triton-windows")):
        remedy = made_one(Fix("install-triton"), python=PYTHON, system=system)
        assert remedy.commands[0] == f"{PIP} install --upgrade {package}"


USE = "export CC=gcc-12 CXX=g++-12 NVCC_CCBIN=g++-12 CUDAHOSTCXX=g++-12"


@pytest.mark.parametrize(
    ("python", "system", "commands"),
    [
        (CONDA, UBUNTU, ("conda install --yes --prefix /c --channel conda-forge gxx_linux-64=12", "$CC --version")),
        (PYTHON, UBUNTU, ("sudo apt-get install --yes gcc-12 g++-12", USE, "gcc-12 --version")),
        (PYTHON, FEDORA, (USE, "gcc-12 --version")),
    ],
)
def test_an_older_gcc(python: Python, system: System, commands: tuple[str, ...]) -> None:
    assert made_one(Fix("install-gcc", newest=12), python=python, system=system).commands == commands


@pytest.mark.parametrize(
    ("gcc", "named"),
    [("13.2", "CUDA 12.4 or newer"), ("14", "CUDA 12.8 or newer"), ("99", "newer ones"), ("", "newer ones")],
)
def test_a_newer_toolkit(gcc: str, named: str) -> None:
    assert named in made_one(Fix("newer-toolkit-for-compiler", gcc=gcc)).summary


@pytest.mark.parametrize(("installed", "note"), [(True, False), (None, True), (False, True)])
def test_a_build_in_the_environment_itself(installed: bool | None, note: bool) -> None:
    here, uv = made(
        Fix("build-without-isolation", package="flash-attn"),
        pytorch=Pytorch(installed=installed),
        python=PYTHON,
        system=UBUNTU,
    )
    assert here.commands[-1] == f"{PIP} install --no-build-isolation flash-attn"
    assert ("after PyTorch is installed" in here.summary) is note
    assert "--no-build-isolation-package flash-attn" in uv.summary


def test_an_unknown_package_gets_only_the_build_tools() -> None:
    here, _ = made(Fix("build-without-isolation", package=""), pytorch=Pytorch(), python=PYTHON, system=UBUNTU)
    assert here.commands[-1] == f"{PIP} install setuptools wheel packaging ninja"


NONE = Pytorch()
HOME = ('export PATH="$CUDA_HOME/bin:$PATH"', "nvcc --version")


def install(path: str, *version: int, nvcc: bool = True) -> ToolkitInstall:
    return ToolkitInstall(path=path, version=CudaVersion(*version), has_nvcc=nvcc)


def commands(*installs: ToolkitInstall, cuda: CudaVersion | None, system: System = UBUNTU) -> tuple[str, ...]:
    return made_one(Fix("use-toolkit", cuda=cuda), toolkit=Toolkit(toolkits=installs), system=system).commands


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


@pytest.mark.parametrize(
    ("version", "cuda", "command"),
    [
        ("24.04", CudaVersion(12, 4), "sudo sh cuda_12.4*_linux.run --toolkit --silent"),
        ("24.04", CudaVersion(12, 5), "sudo apt-get install --yes cuda-toolkit-12-5"),
        ("22.04", CudaVersion(11, 8), "sudo apt-get install --yes cuda-toolkit-11-8"),
    ],
)
def test_a_toolkit_that_the_repository_has_not(version: str, cuda: CudaVersion, command: str) -> None:
    system = System(os="linux", distribution="ubuntu", distribution_version=version)
    assert commands(cuda=cuda, system=system)[0] == command


def test_another_distribution_is_left_to_its_own_packages() -> None:
    found = commands(cuda=CudaVersion(12, 4), system=System(os="linux", distribution="fedora"))
    assert found == ("export CUDA_HOME=/usr/local/cuda-12.4", *HOME)


def test_windows() -> None:
    first, second = commands(cuda=CudaVersion(12, 4), system=System(os="windows"))
    assert first == r"$env:CUDA_HOME = 'C:\Program Files\NVIDIA GPU Computing Toolkit\CUDA\v12.4'"
    assert second == r"& $env:CUDA_HOME\bin\nvcc --version"


@pytest.mark.parametrize("nvcc", [CudaVersion(8, 0), CudaVersion(99, 0)])
def test_no_torch_is_built_for_an_unknown_major(nvcc: CudaVersion) -> None:
    assert made(Fix("torch-for-toolkit", nvcc=nvcc), system=UBUNTU, pytorch=NONE) == ()


def test_the_torch_for_the_toolkit_is_the_newest_that_it_can_compile_for() -> None:
    nvcc = CudaVersion(12, 7)
    (remedy,) = made(Fix("torch-for-toolkit", nvcc=nvcc), system=UBUNTU, pytorch=NONE)
    assert "/whl/cu126" in remedy.commands[0]


def test_cmake_gets_every_architecture_once() -> None:
    devices = tuple(
        Device(nvml_index=n, compute_capability=ComputeCapability(*c)) for n, c in enumerate([(9, 0), (8, 6), (9, 0)])
    )
    assert made_one(Fix("name-to-cmake"), devices=devices).commands[-1].endswith("-DCMAKE_CUDA_ARCHITECTURES='86;90'")
    assert made_one(Fix("name-to-cmake")).commands[-1].endswith("-DCMAKE_CUDA_ARCHITECTURES=86")
