"""The tools with which extensions and kernels are compiled."""

from __future__ import annotations

import pytest

from gpudoctor.model import Fix, PackageVersion, Python, Pytorch, System
from gpudoctor.remedies.build_tools import (
    build_without_isolation,
    install_compiler,
    install_gcc,
    install_python_headers,
    newer_toolkit_for_compiler,
)
from tests.remedies.made import made_one

PYTHON = Python(version=PackageVersion("3.11.9"), executable="/v/bin/python", environment="venv", installer="pip")
CONDA = Python(executable="/c/bin/python", environment="conda", prefix="/c")
UBUNTU, FEDORA = System(os="linux", distribution="ubuntu"), System(os="linux", distribution="fedora")
WINDOWS = System(os="windows")
PIP = "/v/bin/python -m pip"


@pytest.mark.parametrize(
    ("python", "package"), [(PYTHON, "python3.11-dev"), (None, "python3-dev"), (Python(), "python3-dev")]
)
def test_headers_are_those_of_the_python_that_runs(python: Python | None, package: str) -> None:
    linux, _ = install_python_headers(python=python, system=UBUNTU)
    assert linux.commands == (f"sudo apt-get install --yes {package}",)


def test_on_windows_headers_are_copied() -> None:
    (remedy,) = install_python_headers(python=PYTHON, system=WINDOWS)
    assert remedy.commands == ()


@pytest.mark.parametrize(
    ("python", "system", "visual_studio", "first_commands"),
    [
        (CONDA, UBUNTU, False, ["conda install --yes --prefix /c --channel conda-forge gcc gxx"]),
        (PYTHON, UBUNTU, False, ["sudo apt-get install --yes build-essential"]),
        (PYTHON, WINDOWS, False, ["winget install --exact --id Microsoft.VisualStudio.2022.BuildTools"]),
        (
            PYTHON,
            None,
            True,
            [
                "sudo apt-get install --yes build-essential",
                "winget install --exact --id Microsoft.VisualStudio.2022.BuildTools",
            ],
        ),
    ],
)
def test_a_compiler(python: Python, system: System | None, visual_studio: bool, first_commands: list[str]) -> None:
    remedies = install_compiler(visual_studio=visual_studio, python=python, system=system)
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
    assert install_gcc(newest=12, python=python, system=system).commands == commands


@pytest.mark.parametrize(
    ("gcc", "named"),
    [("13.2", "CUDA 12.4 or newer"), ("14", "CUDA 12.8 or newer"), ("99", "newer ones"), ("", "newer ones")],
)
def test_a_newer_toolkit(gcc: str, named: str) -> None:
    assert named in newer_toolkit_for_compiler(gcc=gcc).summary


@pytest.mark.parametrize(("installed", "note"), [(True, False), (None, True), (False, True)])
def test_a_build_in_the_environment_itself(installed: bool | None, note: bool) -> None:
    here, uv = build_without_isolation(
        package="flash-attn", pytorch=Pytorch(installed=installed), python=PYTHON, system=UBUNTU
    )
    assert here.commands[-1] == f"{PIP} install --no-build-isolation flash-attn"
    assert ("after PyTorch is installed" in here.summary) is note
    assert "--no-build-isolation-package flash-attn" in uv.summary


def test_an_unknown_package_gets_only_the_build_tools() -> None:
    here, _ = build_without_isolation(package="", pytorch=Pytorch(), python=PYTHON, system=UBUNTU)
    assert here.commands[-1] == f"{PIP} install setuptools wheel packaging ninja"
