"""Packages that are installed twice, or that do not belong to what is there: which one to keep."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gpudoctor.data.packages import FIRST_TORCH_WITH_NUMPY_2
from gpudoctor.model import CudaVersion, Python, Pytorch, Remedy, System, Torch
from gpudoctor.remedies.commands import environment_of, python_command
from gpudoctor.remedies.fixes import fix
from gpudoctor.remedies.packages import install_packages
from gpudoctor.remedies.torch_install import reinstall_torch

SHOW_PROVIDERS = "import onnxruntime; print(onnxruntime.get_available_providers())"


@fix
def keep_one_distribution(
    *, names: Sequence[str], keep: str, requirement: str = "", show: str = SHOW_PROVIDERS, python: Python | None
) -> Remedy:
    """Return how to keep one of several distributions of a module. requirement: of `keep`, with its version."""
    return install_packages(
        python=python,
        remove=tuple(names),
        requirements=(requirement or keep,),
        summary=f"Remove {' and '.join(names)}, then install {keep} alone",
        verify=show,
    )


@fix
def keep_one_torch(*, python: Python | None, system: System | None, torch: Torch | None) -> Remedy:
    """Return how to keep the PyTorch that pip installed last, which is the one that is imported."""
    environment = environment_of(python, system)
    from_pip = replace(torch, conda_build="", conda_cpuonly=False) if torch is not None else None
    again = reinstall_torch(python=python, system=system, pytorch=from_pip)
    remove = [environment.uninstall(["torch"])]
    if environment.conda_prefix and torch is not None and torch.conda_build:
        remove.append(environment.conda("remove", ["--force", "pytorch"]))
    return Remedy(
        summary="Remove PyTorch with both tools, then install it once, with pip",
        commands=(*remove, *again.commands) if again.commands else (),
        reference=again.reference,
    )


@fix
def reinstall_nvidia_ml_py(*, python: Python | None) -> Remedy:
    """Return how to have the module pynvml of nvidia-ml-py alone."""
    return install_packages(
        python=python,
        remove=("pynvml",),
        requirements=("nvidia-ml-py",),
        force=True,
        summary="Remove pynvml, and install nvidia-ml-py again, whose files go with it",
        verify="import pynvml; print(pynvml.__file__)",
    )


@fix
def match_nvidia_ml_py_to_driver(*, python: Python | None) -> Remedy:
    """Return how to install the nvidia-ml-py of the driver's branch."""
    install = install_packages(
        python=python,
        remove=("pynvml", "nvidia-ml-py3"),
        requirements=("nvidia-ml-py==12.535.*",),
        force=True,
        summary="Update the driver, or install the nvidia-ml-py of the driver's branch (11.525.* for 525, "
        "12.535.* for 535), and remove the packages pynvml and nvidia-ml-py3",
    )
    return replace(install, commands=("nvidia-smi --query-gpu=driver_version --format=csv", *install.commands))


@fix
def install_numpy_1(*, python: Python | None) -> Remedy:
    """Return how to install the NumPy for which a module was compiled."""
    return install_packages(
        python=python,
        requirements=("numpy<2",),
        summary="Install NumPy 1, for which the module was compiled",
        verify="import torch, numpy; print(numpy.__version__, torch.zeros(1).numpy())",
    )


@fix
def install_jax(*, name: str, built_with: str, python: Python | None) -> Remedy:
    """Return how to install JAX with the CUDA libraries that it was built with, by the version of one of them.

    name: "cuBLAS". built_with: 120205 for cuBLAS 12.2.5, 12020 for CUDA 12.2. JAX has wheels for CUDA 12 and 13.
    """
    # Their major versions count one less than CUDA's: cuFFT 11 belongs to CUDA 12.
    number = int(built_with[:2]) + (1 if name in ("cuFFT", "cuSOLVER") else 0)
    major = 13 if number == 13 else 12
    return install_packages(
        python=python,
        requirements=("--upgrade", f"jax[cuda{major}]"),
        summary=f"Install JAX with the CUDA libraries it needs, as wheels (nvidia-*-cu{major})",
        verify="import jax; print(jax.devices())",
    )


@fix
def update_bitsandbytes(*, cuda: CudaVersion | None, failed: bool, python: Python | None) -> Remedy:
    """Return how to update bitsandbytes. cuda: PyTorch's, if known. failed: its set-up ended in an error."""
    suited = f", whose wheels hold the libraries for CUDA {cuda} and for Windows" if cuda else ""
    summary = f"Update bitsandbytes to a version with a library for CUDA {cuda}"
    if failed:
        summary = f"Upgrade bitsandbytes{suited}: from 0.43 on it takes the CUDA libraries that PyTorch brought"
    return install_packages(
        python=python,
        requirements=("--upgrade", "bitsandbytes"),
        summary=summary,
        verify="import bitsandbytes; print(bitsandbytes.__version__)",
    )


@fix
def ask_bitsandbytes(*, python: Python | None) -> Remedy:
    """Return how to see whether PyTorch sees the GPU, and what bitsandbytes says."""
    show = "import torch; print(torch.__version__, torch.version.cuda, torch.cuda.is_available())"
    return Remedy(
        summary="Check whether PyTorch sees the GPU: without CUDA in it bitsandbytes takes its library for the CPU",
        commands=(python_command(python, "-c", show), python_command(python, "-m", "bitsandbytes")),
    )


@fix
def libcudart_for_bitsandbytes(*, python: Python | None, system: System | None) -> tuple[Remedy, ...]:
    """Return how to let an older bitsandbytes find libcudart; nothing on Windows."""
    if system is not None and system.os == "windows":
        return ()
    return (
        Remedy(
            summary="If it must stay as it is, put the folder of libcudart.so on LD_LIBRARY_PATH: a toolkit's, "
            "or of conda's cudatoolkit or cuda-runtime",
            commands=(
                "find / -name 'libcudart.so*' 2>/dev/null",
                'export LD_LIBRARY_PATH="$LD_LIBRARY_PATH:/usr/local/cuda/lib64"',
                python_command(python, "-m", "bitsandbytes"),
            ),
        ),
    )


@fix
def update_for_numpy_2(*, pytorch: Pytorch | None) -> Remedy:
    """Return what to update so that it runs with NumPy 2."""
    version = pytorch.version if pytorch is not None else None
    if version is not None and version.release < FIRST_TORCH_WITH_NUMPY_2:
        return Remedy(summary="Or update PyTorch to 2.3 or newer, which runs with NumPy 2")
    return Remedy(
        summary="Or update the module that was compiled for NumPy 1: PyTorch 2.3 and newer run with NumPy 2; one "
        "that was compiled for a newer NumPy than the installed one needs pip install --upgrade numpy"
    )


@fix
def system_library_for_extension(*, asks: str, python: Python | None, system: System | None) -> tuple[Remedy, ...]:
    """Return how to get a package that runs with this system's libraries. asks: "GLIBC_2.32", "GLIBCXX_3.4.32"."""
    rebuild = Remedy(
        summary="Install an older wheel of the package, or rebuild it here: pip install --no-build-isolation "
        "--no-binary :all: --no-cache-dir with the package's name",
        commands=("ldd --version",),
    )
    if asks.startswith("GLIBC_"):
        return rebuild, Remedy(
            summary="Or use a newer distribution, or a container image with one: glibc is not replaced"
        )
    environment = environment_of(python, system)
    update = "conda install -c conda-forge libstdcxx-ng"
    if environment.conda_prefix:
        update = environment.conda("install", ["-c", "conda-forge", "libstdcxx-ng"])
    newer = Remedy(
        summary="Let a newer libstdc++ be found first: that of conda-forge in the environment, with its lib folder on "
        "LD_LIBRARY_PATH, or the distribution's newer libstdc++6",
        commands=(update, "strings /usr/lib/x86_64-linux-gnu/libstdc++.so.6 | grep GLIBCXX_3.4 | tail -3"),
    )
    return newer, rebuild
