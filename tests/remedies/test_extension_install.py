"""Getting a build of a compiled extension that fits the installed PyTorch."""

from __future__ import annotations

import pytest

from gpudoctor.model import CudaVersion, Fix, Package, PackageVersion, Python, Pytorch, System
from tests.remedies.made import made, made_one

PYTHON = Python(executable="/v/bin/python", environment="venv", installer="pip")
LINUX = System(os="linux")
PIP = "/v/bin/python -m pip"
TORCH = Pytorch(
    installed=True,
    version=PackageVersion("2.4.1+cu121"),
    build="cuda",
    cuda_version=CudaVersion(12, 1),
    cxx11_abi=False,
)
CPU = Pytorch(installed=True, version=PackageVersion("2.4.1+cpu"), build="cpu")
LIKELY_CPU = Pytorch(installed=True, version=PackageVersion("2.4.1"), build="cpu", likely={"build": "x"})


def commands(name: str, pytorch: Pytorch = TORCH) -> list[str]:
    remedies = made(Fix("reinstall-extension", name=name), pytorch=pytorch, python=PYTHON, system=LINUX)
    return [command for remedy in remedies for command in remedy.commands]


def replaced(name: str, pytorch: Pytorch = TORCH) -> tuple[str, ...]:
    package = Package(name=name, version=PackageVersion("2.6.3+cu123torch2.3"))
    return made_one(Fix("replace-extension", package=package), pytorch=pytorch, python=PYTHON, system=LINUX).commands


@pytest.mark.parametrize(
    ("pytorch", "page"), [(TORCH, "torch-2.4.0+cu121.html"), (CPU, "torch-2.4.0+cpu.html"), (LIKELY_CPU, None)]
)
def test_the_wheels_of_pyg_have_a_page_for_each_pytorch(pytorch: Pytorch, page: str | None) -> None:
    found = replaced("torch-scatter", pytorch)
    install = f"{PIP} install --no-deps --no-cache-dir --find-links https://data.pyg.org/whl/{page} torch-scatter"
    assert found[:2] == ((f"{PIP} uninstall -y torch-scatter", install) if page else ())
    assert (install in commands("torch-scatter", pytorch)) is (page is not None)


def test_flash_attention_finds_its_wheel_itself() -> None:
    assert replaced("flash-attn") == (
        f"{PIP} install --force-reinstall --no-deps --no-build-isolation --no-cache-dir flash-attn==2.6.3",
        '/v/bin/python -c "import torch, flash_attn; print(torch.__version__)"',
    )
    assert replaced("natten") == ()


@pytest.mark.parametrize(
    ("name", "second"),
    [
        ("flash-attn", f"{PIP} install --no-build-isolation --no-cache-dir --no-deps flash-attn"),
        (
            "apex",
            f"{PIP} install --no-build-isolation --no-cache-dir --no-deps git+https://github.com/NVIDIA/apex.git",
        ),
        (
            "xformers",
            f"{PIP} install --no-cache-dir xformers --index-url https://download.pytorch.org/whl/cu121 torch==2.4.1",
        ),
        ("vllm", f"{PIP} install --no-cache-dir vllm"),
        ("mmcv", f"{PIP} install -U openmim"),
    ],
)
def test_an_extension_is_removed_and_installed(name: str, second: str) -> None:
    first, found, *_ = commands(name)
    assert first.startswith(f"{PIP} uninstall -y {name}")
    assert found == second


@pytest.mark.parametrize("name", ["deepspeed", "torch_extensions"])
def test_what_is_compiled_at_run_time_is_deleted(name: str) -> None:
    assert commands(name)[0] == "rm -rf ~/.cache/torch_extensions"


def test_an_unknown_extension_is_described() -> None:
    (remedy,) = made(Fix("reinstall-extension", name=""), pytorch=TORCH, python=PYTHON, system=LINUX)
    assert "PyTorch 2.4.1+cu121 (CUDA 12.1), C++11 ABI off" in remedy.summary
    (remedy,) = made(Fix("reinstall-extension", name=""), pytorch=Pytorch(), python=PYTHON, system=LINUX)
    assert "the installed PyTorch" in remedy.summary
