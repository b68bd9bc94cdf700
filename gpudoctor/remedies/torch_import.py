"""Fixes of an import of PyTorch that fails: libraries that are missing, older or newer than the build needs."""

from __future__ import annotations

import shlex

from gpudoctor.model import Environment, Place, Python, Pytorch, Remedy, System
from gpudoctor.remedies.commands import python_command
from gpudoctor.remedies.containers import start_container_with_gpu
from gpudoctor.remedies.driver_install import install_driver
from gpudoctor.remedies.fixes import fix
from gpudoctor.remedies.torch_install import reinstall_torch
from gpudoctor.remedies.variables import unset_variable

VERSION = "import torch; print(torch.__version__)"


@fix
def reach_driver_library(*, system: System | None, place: Place) -> Remedy:
    """Return how to get libcuda, which belongs to the driver: a container gets the host's."""
    return start_container_with_gpu(system=system) if place.in_container else install_driver(system=system)


@fix
def load_own_libraries(
    *, python: Python | None, system: System | None, environment: Environment | None, pytorch: Pytorch
) -> tuple[Remedy, ...]:
    """Return how to make PyTorch load the libraries that belong to its build."""
    reinstall = reinstall_torch(python=python, system=system, pytorch=pytorch)
    if environment is None or not environment.get("LD_LIBRARY_PATH"):
        return (reinstall,)
    summary = "Remove LD_LIBRARY_PATH, whose folders come before the libraries of PyTorch"
    return (unset_variable(system=system, name="LD_LIBRARY_PATH", summary=summary), reinstall)


@fix
def get_newer_c_library(*, python: Python | None, version: str) -> Remedy:
    """Return how to get a newer glibc, which is part of the system, or libstdc++, of which conda has its own.

    version: what the build needs: "GLIBCXX_3.4.30".
    """
    in_conda = python is not None and python.environment == "conda" and python.prefix
    if in_conda and python is not None and not version.startswith("GLIBC_"):
        update = ["conda", "install", "--yes", "--prefix", python.prefix or "", "--channel", "conda-forge"]
        return Remedy(
            summary="Update the C++ library of the conda environment",
            commands=(shlex.join([*update, "libstdcxx-ng"]), python_command(python, "-c", VERSION)),
        )
    return Remedy(
        summary=f"Use a distribution or container image that has {version}, or an older PyTorch release, which "
        "was built for the library here"
    )
