"""Packages that are installed twice, or that do not belong to what is there."""

from __future__ import annotations

import pytest

from gpudoctor.model import CudaVersion, Fix, Package, PackageVersion, Python, Pytorch, System, Torch
from tests.remedies.made import made, made_one

PYTHON = Python(executable="/v/bin/python", environment="venv", installer="pip")
CONDA = Python(
    executable="/c/bin/python",
    environment="conda",
    prefix="/c",
    packages=(Package(name="pytorch", version=PackageVersion("2.5.1"), installer="conda"),),
)
LINUX, WINDOWS = System(os="linux"), System(os="windows")
PIP = "/v/bin/python -m pip"


def test_one_of_two_distributions_stays() -> None:
    remedy = made_one(
        Fix("keep-one-distribution", names=("a", "b"), keep="b", requirement="b==1.2", show="import m"), python=PYTHON
    )
    assert remedy.commands == (
        f"{PIP} uninstall -y a b",
        f"{PIP} install b==1.2",
        '/v/bin/python -c "import m"',
    )


def test_pytorch_of_conda_and_of_pip_both_go() -> None:
    torch = Torch(installed=True, version=PackageVersion("2.6.0"), conda_build="py3.12_cuda12.4")
    commands = made_one(Fix("keep-one-torch"), python=CONDA, system=LINUX, torch=torch).commands
    assert commands[:3] == (
        "/c/bin/python -m pip uninstall -y torch",
        "conda remove --yes --prefix /c --force pytorch",
        "/c/bin/python -m pip install --force-reinstall torch==2.6.0",
    )


def test_an_unknown_pytorch_has_no_command() -> None:
    assert made_one(Fix("keep-one-torch"), python=PYTHON, system=LINUX).commands == ()


def test_the_binding_of_nvml() -> None:
    assert made_one(Fix("reinstall-nvidia-ml-py"), python=PYTHON).commands[:2] == (
        f"{PIP} uninstall -y pynvml nvidia-ml-py3",
        f"{PIP} install --force-reinstall nvidia-ml-py",
    )
    assert made_one(Fix("match-nvidia-ml-py-to-driver"), python=PYTHON).commands == (
        "nvidia-smi --query-gpu=driver_version --format=csv",
        f"{PIP} uninstall -y pynvml nvidia-ml-py3",
        f"{PIP} install --force-reinstall 'nvidia-ml-py==12.535.*'",
    )


@pytest.mark.parametrize(
    ("name", "built_with", "extra"),
    [
        ("cuBLAS", "120205", "cuda12"),
        ("cuFFT", "11002", "cuda12"),
        ("cuFFT", "12000", "cuda13"),
        ("cuSOLVER", "12001", "cuda13"),
        ("cuSOLVER", "11703", "cuda12"),
        ("cuBLAS", "130000", "cuda13"),
        ("cuBLAS", "140000", "cuda12"),
        ("CUDA", "13000", "cuda13"),
        ("cuBLAS", "111103", "cuda12"),
    ],
)
def test_jax_comes_with_the_cuda_that_it_was_built_with(name: str, built_with: str, extra: str) -> None:
    remedy = made_one(Fix("install-jax", name=name, built_with=built_with), python=PYTHON)
    assert remedy.commands[0] == f"{PIP} install --upgrade 'jax[{extra}]'"


@pytest.mark.parametrize("name", ["update-bitsandbytes", "upgrade-failed-bitsandbytes"])
def test_bitsandbytes_is_updated(name: str) -> None:
    remedy = made_one(Fix(name, cuda=CudaVersion(12, 8)), python=PYTHON)
    assert remedy.commands[0] == f"{PIP} install --upgrade bitsandbytes"
    assert "for CUDA 12.8" in remedy.summary


def test_an_unknown_cuda_is_left_out() -> None:
    assert "for CUDA" not in made_one(Fix("upgrade-failed-bitsandbytes", cuda=None), python=PYTHON).summary


def test_bitsandbytes_is_asked() -> None:
    assert made_one(Fix("ask-bitsandbytes"), python=PYTHON).commands[-1] == "/v/bin/python -m bitsandbytes"


def test_libcudart_is_a_question_of_linux() -> None:
    remedy = made_one(Fix("libcudart-for-bitsandbytes"), python=PYTHON, system=LINUX)
    assert remedy.commands[-1] == "/v/bin/python -m bitsandbytes"
    assert made(Fix("libcudart-for-bitsandbytes"), python=PYTHON, system=WINDOWS) == ()


@pytest.mark.parametrize(("version", "of_torch"), [("2.2.2", True), ("2.3.0", False), ("2.13.0", False), (None, False)])
def test_only_a_pytorch_before_2_3_is_updated_for_numpy_2(version: str | None, of_torch: bool) -> None:
    pytorch = Pytorch(version=PackageVersion(version) if version else None)
    assert made_one(Fix("update-for-numpy-2"), pytorch=pytorch).summary.startswith("Update PyTorch") is of_torch
    assert made_one(Fix("install-numpy-1"), python=PYTHON).commands[0] == f"{PIP} install 'numpy<2'"


def test_glibc_is_not_replaced() -> None:
    rebuild, other = made(Fix("system-library-for-extension", asks="GLIBC_2.32"), python=PYTHON, system=LINUX)
    assert rebuild.commands == ("ldd --version",)
    assert other.commands == ()


@pytest.mark.parametrize(
    ("python", "command"),
    [
        (PYTHON, "conda install -c conda-forge libstdcxx-ng"),
        (CONDA, "conda install --yes --prefix /c -c conda-forge libstdcxx-ng"),
    ],
)
def test_libstdcxx_comes_from_conda(python: Python, command: str) -> None:
    first, _ = made(Fix("system-library-for-extension", asks="GLIBCXX_3.4.32"), python=python, system=LINUX)
    assert first.commands[0] == command


@pytest.mark.parametrize(("torch", "kept"), [("2.1.2+cu121", " torch==2.1.2"), ("2.9.0.dev20250801", ""), (None, "")])
def test_an_upgrade_keeps_the_installed_pytorch(torch: str | None, kept: str) -> None:
    version = PackageVersion(torch) if torch else None
    remedy = made_one(Fix("upgrade-failed-bitsandbytes", cuda=None), torch=Torch(version=version))
    assert remedy.commands[0] == f"python -m pip install --upgrade bitsandbytes{kept}"
