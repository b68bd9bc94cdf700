"""The Python environment for PyTorch: installing it for the first time, and choosing or making the environment."""

from __future__ import annotations

from gpudoctor.model import Device, Driver, Gpu, Python, Remedy, System
from gpudoctor.remedies.commands import is_windows, python_command, quote
from gpudoctor.remedies.fixes import fix
from gpudoctor.remedies.packages import install_packages
from gpudoctor.remedies.torch_install import REFERENCE, install_torch

CPU_INDEX = "https://download.pytorch.org/whl/cpu"
VERSION = "import torch; print(torch.__version__)"


@fix
def install_torch_first(
    *,
    gpu: Gpu,
    python: Python | None,
    system: System | None,
    driver: Driver | None,
    devices: tuple[Device, ...] | None,
) -> Remedy:
    """Return how to install PyTorch where there is none: the build for the GPU, else for the CPU."""
    if gpu.name != "":
        return install_torch(python=python, system=system, driver=driver, devices=devices)
    if system is not None and any(found.vendor == "amd" for found in system.pci_gpus or ()):
        return Remedy(summary="Install PyTorch's ROCm build if it supports the AMD GPU here", reference=REFERENCE)
    on_mac = system is not None and system.os == "darwin"
    return install_packages(
        python=python,
        requirements=("torch",) if on_mac else ("--index-url", CPU_INDEX, "torch"),
        summary="Install PyTorch" if on_mac else "Install the CPU build of PyTorch, because there is no NVIDIA GPU",
        verify=VERSION,
    )


@fix
def install_after_torch(*, python: Python | None) -> Remedy:
    """Return how to install a package that imports torch while it is built."""
    return Remedy(
        summary="Then install the package whose setup.py imports torch, in a command of its own and with "
        "--no-build-isolation",
        commands=(python_command(python, "-c", VERSION),),
    )


@fix
def use_environment_with_torch(*, python: Python | None) -> Remedy:
    """Return how to run the program in the environment that has PyTorch."""
    return Remedy(
        summary="Or run the program in the environment that has PyTorch: activate it (conda activate NAME, or the "
        "activate script of its venv), choose it as the notebook's kernel, and check which Python runs",
        commands=(python_command(python, "-c", "import sys; print(sys.executable)"),),
    )


@fix
def rename_shadowing_file(*, python: Python | None, system: System | None, source: str, module: str) -> Remedy:
    """Return how to rename the file or folder that is imported instead of the module."""
    windows = is_windows(python or Python(), system)
    stem, suffix = (source[:-3], ".py") if source.endswith(".py") else (source, "")
    move = "Move-Item" if windows else "mv"
    return Remedy(
        summary=f"Give {source} another name, here and where it is imported, or run from another folder",
        commands=(
            f"{move} {quote(source, windows)} {quote(f'{stem}_renamed{suffix}', windows)}",
            python_command(python, "-c", f"import {module}; print({module}.__file__)"),
        ),
    )
