"""Packages that are installed twice, or that do not belong to what is there: which one to keep."""

from collections.abc import Sequence
from dataclasses import replace

from gpudoctor.data.packages import FIRST_TORCH_WITH_NUMPY_2
from gpudoctor.model import Python, Pytorch, Remedy, System, Torch
from gpudoctor.remedies.commands import environment_of
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
