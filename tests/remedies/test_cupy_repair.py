"""Repairing CuPy."""

from __future__ import annotations

import pytest

from gpudoctor.model import ComputeCapability, Cupy, CupyStatus, Fix, KnownGpu, Package, PackageVersion, Python, System
from tests.remedies.made import made, made_one

PYTHON = Python(version=PackageVersion("3.12.3"), executable="/v/bin/python", environment="venv", installer="pip")
LINUX, WINDOWS = System(os="linux", machine="x86_64"), System(os="windows", machine="x86_64")
PIP = "/v/bin/python -m pip"


def installed(*names: str, numpy: str | None = None, cuda_major: int | None = None) -> Cupy:
    return Cupy(
        distributions=tuple(Package(name=name, version=PackageVersion("13.6.0")) for name in names),
        cuda_major=cuda_major,
        numpy_version=PackageVersion(numpy) if numpy else None,
    )


def test_every_cupy_goes_and_one_comes() -> None:
    remedy = made_one(
        Fix("reinstall-cupy"), python=PYTHON, system=LINUX, cupy=installed("cupy-cuda12x", "cupy-rocm-5-0")
    )
    removed, install, _ = remedy.commands
    names = "cupy-cuda12x cupy-rocm-5-0 cupy cupy-cuda11x cupy-cuda13x"
    assert removed == f"{PIP} uninstall -y {names}"
    assert install == f"{PIP} install 'cupy-cuda12x[ctk]'"


def test_an_older_cupy_has_the_part() -> None:
    remedy = made_one(Fix("install-older-cupy", part="cupy.util"), python=PYTHON, cupy=installed("cupy-cuda12x"))
    assert remedy.commands[0] == f"{PIP} uninstall -y cupy-cuda12x"
    assert remedy.commands[1].startswith(f"{PIP} install 'cupy-cuda")
    assert "<8" in remedy.commands[1]


@pytest.mark.parametrize(
    ("library", "cupy", "wheel"),
    [
        ("libcublas.so.12", None, "nvidia-cublas-cu12"),
        ("cublas", None, "nvidia-cublas-cu12"),
        ("nvrtc", installed(cuda_major=13), "nvidia-cuda-nvrtc"),
        ("nvrtc", installed(cuda_major=11), "nvidia-cuda-nvrtc-cu11"),
        ("libnvrtc.so.12", installed(cuda_major=13), "nvidia-cuda-nvrtc-cu12"),
        ("nvrtc-builtins", None, "nvidia-cuda-nvrtc-cu12"),
    ],
)
def test_the_wheel_of_a_library(library: str, cupy: Cupy | None, wheel: str) -> None:
    first, *_ = made(Fix("install-library-for-cupy", library=library), cupy=cupy, python=PYTHON, system=LINUX)
    assert first.commands == (f"{PIP} install {wheel}",)


@pytest.mark.parametrize(("system", "variable"), [(LINUX, "export CUDA_PATH="), (WINDOWS, "$env:CUDA_PATH = ")])
def test_cupy_reads_the_toolkit_from_cuda_path(system: System, variable: str) -> None:
    assert made_one(Fix("name-toolkit-to-cupy"), system=system).commands[1].startswith(variable)


def test_a_toolkit_for_the_gpu() -> None:
    gpu = KnownGpu(name="NVIDIA L4", capability=ComputeCapability(8, 9), fact="devices[0].name")
    assert "NVIDIA L4 (sm_89), which needs CUDA 11.8 or newer" in made_one(Fix("toolkit-for-gpu", gpu=gpu)).summary


def test_an_unknown_gpu_before_turing_needs_cuda_12() -> None:
    older, newer = made(Fix("cupy-by-gpu-generation"), python=PYTHON, system=LINUX)
    assert older.commands[0] == f"{PIP} install 'cupy-cuda12x[ctk]'"
    assert "12.8" in newer.summary


@pytest.mark.parametrize(
    ("requirement", "fits", "command"),
    [
        (">=1.20,<2", False, f"{PIP} install 'numpy>=1.20,<2'"),
        (">=1.20,<2", True, f"{PIP} install --force-reinstall 'numpy>=1.20,<2'"),
    ],
)
def test_the_numpy_that_cupy_needs(requirement: str, fits: bool, command: str) -> None:
    (remedy,) = made(Fix("install-numpy-for-cupy", requirement=requirement, installed_fits=fits), python=PYTHON)
    assert remedy.commands[0] == command


@pytest.mark.parametrize("requirement", ["", '<2; python_version < "3.9"'])
def test_a_requirement_that_pip_cannot_take(requirement: str) -> None:
    assert made(Fix("install-numpy-for-cupy", requirement=requirement, installed_fits=True), python=PYTHON) == ()


@pytest.mark.parametrize(
    ("name", "version", "numpy"),
    [
        *((name, "11.0", "numpy<1.24") for name in ("bool", "int", "float", "object", "complex", "str", "typeDict")),
        ("product", "12.3", "numpy<2"),
        ("product", None, "numpy<2"),
        ("bool", "14.0", ""),
    ],
)
def test_a_numpy_that_still_has_the_name(name: str, version: str | None, numpy: str) -> None:
    status = CupyStatus(version=PackageVersion(version) if version else None)
    remedies = made(Fix("numpy-with-removed-name", name=name), cupy_status=status, python=PYTHON)
    assert [remedy.commands[0] for remedy in remedies] == ([f"{PIP} install '{numpy}'"] if numpy else [])


def test_an_upgrade_is_for_the_newest_numpy() -> None:
    cupy = installed("cupy-cuda12x", numpy="1.26.4")
    remedy = made_one(Fix("upgrade-cupy-for-numpy"), python=PYTHON, system=LINUX, cupy=cupy)
    assert remedy.commands[0] == f"{PIP} install --upgrade 'cupy-cuda12x[ctk]'"


def test_a_new_environment_gets_its_own_cupy() -> None:
    create, install, verify = made_one(Fix("install-cupy-in-new-environment"), system=LINUX).commands
    assert create == "python3 -m venv .venv"
    assert install.startswith(".venv/bin/python -m pip install ")
    assert verify.startswith(".venv/bin/python -c ")


def test_spacy_gets_a_cupy_and_a_look_at_it() -> None:
    install, see = made(Fix("install-cupy-for-spacy"), python=PYTHON, system=LINUX)
    assert install.commands[0] == f"{PIP} install 'cupy-cuda12x[ctk]'"
    assert install.reference == "https://spacy.io/usage#gpu"
    assert "cupy.show_config()" in see.commands[0]


def test_three_versions_are_compared() -> None:
    commands = made_one(Fix("compare-cuda-versions"), python=PYTHON).commands
    assert [command.split()[-1] for command in commands[:2]] == ["list", "--version"]


def test_a_toolkit_is_compared_with_the_gpu() -> None:
    gpu = KnownGpu(name="NVIDIA GeForce RTX 5090", capability=ComputeCapability(12, 0), fact="devices[0].name")
    assert made_one(Fix("toolkit-for-gpu", gpu=gpu)).commands == (
        "nvidia-smi --query-gpu=name,compute_cap --format=csv",
        "nvcc --list-gpu-arch",
    )
