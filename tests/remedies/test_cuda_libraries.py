"""Installing CUDA's libraries and cuDNN."""

from __future__ import annotations

import pytest

from gpudoctor.model import CudaVersion, Device, Fix, Package, PackageVersion, Python, Pytorch, System
from gpudoctor.remedies.cuda_libraries import (
    ctranslate2_for_cudnn,
    install_cuda_library,
    reinstall_cuda_wheel,
    use_one_cudnn,
)
from tests.remedies.made import made, made_one

PYTHON = Python(executable="/v/bin/python", environment="venv", installer="pip")
LINUX, WINDOWS = System(os="linux"), System(os="windows")
PIP = "/v/bin/python -m pip"
FOR_12 = Pytorch(cuda_version=CudaVersion(12, 4))


@pytest.mark.parametrize(
    ("name", "pytorch", "wheel"),
    [
        ("libcublas.so.12", FOR_12, "nvidia-cublas-cu12"),
        ("libcublas.so", FOR_12, "nvidia-cublas-cu12"),
        ("libcublas.so", Pytorch(cuda_version=CudaVersion(13, 0)), "nvidia-cublas"),
        ("libcublas.so", None, "nvidia-cublas-cu12"),
    ],
)
def test_the_wheel_of_a_library(name: str, pytorch: Pytorch | None, wheel: str) -> None:
    first, toolkit = install_cuda_library(name=name, python=PYTHON, system=LINUX, pytorch=pytorch)
    assert first.commands == (f"{PIP} install {wheel}",)
    assert toolkit.commands[1] == "ls /usr/local/cuda/lib64 | grep libcublas"


def test_a_library_of_another_cuda_than_pytorch_is_of_a_package_to_replace() -> None:
    replace, *_ = install_cuda_library(name="libcublas.so.11", python=PYTHON, system=LINUX, pytorch=FOR_12)
    assert replace.commands == ()
    assert "in its build for CUDA 12.4" in replace.summary


def test_an_unknown_library_has_no_wheel() -> None:
    (toolkit,) = install_cuda_library(name="libnpp.so.12", python=PYTHON, system=WINDOWS, pytorch=None)
    assert toolkit.commands == ()


@pytest.mark.parametrize(
    ("python", "pytorch", "cuda_major", "wheel"),
    [
        (PYTHON, FOR_12, 11, "'nvidia-cudnn-cu12==9.*'"),
        (PYTHON, None, 11, "'nvidia-cudnn-cu11==9.*'"),
        (PYTHON, None, None, "'nvidia-cudnn-cu12==9.*'"),
        (
            Python(packages=(Package(name="x-cu11", version=PackageVersion("1")),)),
            None,
            None,
            "'nvidia-cudnn-cu11==9.*'",
        ),
    ],
)
def test_the_wheel_of_cudnn(python: Python, pytorch: Pytorch | None, cuda_major: int | None, wheel: str) -> None:
    fix = Fix("install-cudnn", cuda_major=cuda_major, version="==9.*", major=9)
    first, _ = made(fix, python=python, system=LINUX, pytorch=pytorch)
    assert first.commands[0].endswith(f"install --upgrade {wheel}")
    assert first.commands[1].startswith("export LD_LIBRARY_PATH=")


@pytest.mark.parametrize(
    ("name", "version", "major", "requirement"),
    [
        ("Tesla V100-SXM2-32GB", "==9.*", 9, "'nvidia-cudnn-cu12>=9,<9.11'"),
        ("NVIDIA GeForce GTX 1080", "", None, "'nvidia-cudnn-cu12>=9,<9.11'"),
        ("Tesla V100-SXM2-32GB", "==8.*", 8, "'nvidia-cudnn-cu12==8.*'"),
        ("Tesla T4", "==9.*", 9, "'nvidia-cudnn-cu12==9.*'"),
        ("a product that nobody knows", "==9.*", 9, "'nvidia-cudnn-cu12==9.*'"),
    ],
)
def test_the_last_cudnn_for_volta(name: str, version: str, major: int | None, requirement: str) -> None:
    fix = Fix("install-cudnn", cuda_major=12, version=version, major=major)
    first, second = made(fix, python=PYTHON, system=LINUX, devices=(Device(nvml_index=0, name=name),))
    assert first.commands[0] == f"{PIP} install --upgrade {requirement}"
    package = {8: "(Debian and Ubuntu: libcudnn8)", 9: "(Debian and Ubuntu: cudnn9-cuda-12)"}
    assert [text in second.summary for text in package.values()] == [major == number for number in package]


def test_cudnn_before_8_has_no_wheel() -> None:
    sections = {"python": PYTHON, "system": LINUX}
    (remedy,) = made(Fix("install-cudnn", cuda_major=None, version="==7.*", major=7), **sections)
    assert remedy.commands == ("conda install 'cudnn==7.*'",)
    wheel, _ = made(Fix("install-cudnn", cuda_major=None, version="==8.*", major=8), **sections)
    assert wheel.commands[0] == f"{PIP} install --upgrade 'nvidia-cudnn-cu12==8.*'"


def test_cuda_10_has_no_wheels() -> None:
    toolkit, keep = install_cuda_library(name="libcudart.so.10.1", python=PYTHON, system=LINUX, pytorch=None)
    assert "rebuild your own extension" in keep.summary
    assert "CUDA toolkit 10" in toolkit.summary


@pytest.mark.parametrize(("of_torch", "requirement"), [(9, "ctranslate2>=4.5.0"), (8, "ctranslate2<4.5.0")])
def test_another_package_uses_the_cudnn_of_pytorch(of_torch: int, requirement: str) -> None:
    remedy = use_one_cudnn(asked_for=17 - of_torch, of_torch=of_torch, python=PYTHON)
    assert remedy.commands == (f"{PIP} install '{requirement}'",)
    other = ctranslate2_for_cudnn(asked_for=17 - of_torch, python=PYTHON)
    assert other.commands == remedy.commands
    assert f"PyTorch has cuDNN {of_torch}," in other.summary


def test_headers_are_those_of_the_wheel() -> None:
    (command,) = made_one(Fix("install-cudnn-headers"), python=PYTHON, system=LINUX).commands
    assert command.startswith('export CUDNN_HOME="$(/v/bin/python -c ')


@pytest.mark.parametrize(("framework", "name"), [("tensorflow", "tensorflow[and-cuda]"), ("jax", "jax[cuda12]")])
def test_a_framework_brings_its_libraries(framework: str, name: str) -> None:
    install = made_one(Fix(f"{framework}-libraries"), python=PYTHON, system=LINUX)
    assert install.commands[0] == f"{PIP} install --upgrade '{name}'"


@pytest.mark.parametrize("certain", [True, False])
def test_a_wheel_is_reinstalled_though_it_is_there(certain: bool) -> None:
    remedy = reinstall_cuda_wheel(wheel="nvidia-nccl-cu12", certain=certain, python=PYTHON)
    assert remedy.commands[0] == f"{PIP} install --force-reinstall --upgrade nvidia-nccl-cu12"
    assert ("cu11 in its name" in remedy.summary) is not certain


def test_another_libcuda_leaves_the_path() -> None:
    remedy = made_one(Fix("remove-library-folder", folder="stubs of a toolkit"))
    assert "the folder stubs of a toolkit from" in remedy.summary
    assert remedy.commands[-1] == "ldconfig -p | grep libcuda.so"
