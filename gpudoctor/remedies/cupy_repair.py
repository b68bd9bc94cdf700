"""Repairing CuPy: a package that is not whole, libraries and headers that it does not find, a NumPy that fits."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from gpudoctor.data import removed_from_cupy, toolkit_span
from gpudoctor.data.cuda_libraries import cuda_major_of, library_stem
from gpudoctor.model import Cupy, CupyStatus, Device, Driver, KnownGpu, Package, PackageVersion, Python, Remedy, System
from gpudoctor.remedies.commands import python_command
from gpudoctor.remedies.cuda_libraries import install_cuda_library
from gpudoctor.remedies.cupy_install import install_cupy
from gpudoctor.remedies.fixes import fix
from gpudoctor.remedies.packages import install_packages

# Distributions that people have; pip passes over those that are not installed.
USUAL = ("cupy", "cupy-cuda11x", "cupy-cuda12x", "cupy-cuda13x")
VERIFY = "import cupy; print(cupy.__version__)"
VERIFY_NUMPY = "import numpy, cupy; print(numpy.__version__, cupy.__version__)"
# Names that NumPy 1.24 removed; the others went with NumPy 2. Source: release notes of NumPy 1.24.
REMOVED_IN_1_24 = ("bool", "int", "float", "object", "complex", "str", "typeDict")
# The interpreter of the environment that is advised if Python is too old.
NEW_PYTHON = Python(executable=".venv/bin/python", installer="pip")


@fix
def reinstall_cupy(
    *,
    python: Python | None,
    system: System | None,
    driver: Driver | None,
    devices: Sequence[Device] | None,
    cupy: Cupy | None,
) -> Remedy:
    """Return how to remove every CuPy, installed with whatever name, and to install the one that fits."""
    there = (cupy.distributions if cupy is not None else None) or ()
    others = [name for name in USUAL if name not in {package.name for package in there}]
    every = (*there, *(Package(name=name, version=PackageVersion("")) for name in others))
    with_every = replace(cupy or Cupy(), distributions=every)
    remedy = install_cupy(python=python, system=system, driver=driver, devices=devices, cupy=with_every)
    return replace(
        remedy,
        summary="Uninstall every CuPy that pip list names, delete what is left of the folder cupy, then: "
        + remedy.summary,
        needs=(),
    )


@fix
def install_older_cupy(*, part: str, python: Python | None, cupy: Cupy | None) -> Remedy:
    """Return how to install a CuPy that still has the part; whoever can change the program needs none."""
    removed = removed_from_cupy(part)
    assert removed is not None  # checks ask only for parts of the table
    return install_packages(
        python=python,
        requirements=(f"{removed.package}<{removed.last + 1}",),
        remove=[package.name for package in (cupy.distributions if cupy is not None else None) or ()],
        summary=f"Change the program to use {removed.instead}, or update it; or install a CuPy before "
        f"{removed.last + 1} for the CUDA and the Python that are here (Chainer 7 needs CuPy 7)",
        verify=VERIFY,
    )


@fix
def install_library_for_cupy(
    *, library: str, cupy: Cupy | None, python: Python | None, system: System | None
) -> tuple[Remedy, ...]:
    """Return how to give CuPy a CUDA library, by its file's name or only "cublas"."""
    name = library if "." in library else f"lib{library.removeprefix('lib')}.so"
    major = cupy.cuda_major if cupy is not None else None
    if library_stem(name) == "nvrtc" and cuda_major_of(name) is None and major is not None:
        name = f"libnvrtc.so.{major}"
    return install_cuda_library(name=name, python=python, system=system, pytorch=None)


@fix
def install_cupy_for_spacy(
    *,
    python: Python | None,
    system: System | None,
    driver: Driver | None,
    devices: Sequence[Device] | None,
    cupy: Cupy | None,
) -> tuple[Remedy, ...]:
    """Return how to install the CuPy that spaCy does not find, and how to see why CuPy fails if it is there."""
    install = install_cupy(python=python, system=system, driver=driver, devices=devices, cupy=cupy)
    see = Remedy(
        summary="See what CuPy itself says: No module named 'cupy' if it is not installed, else why it "
        "cannot be loaded or finds no device",
        commands=(python_command(python, "-c", "import cupy; cupy.show_config(); print(cupy.arange(3))"),),
    )
    return replace(install, reference="https://spacy.io/usage#gpu"), see


@fix
def toolkit_for_gpu(*, gpu: KnownGpu) -> Remedy:
    """Return how to get a toolkit whose NVRTC compiles for the GPU."""
    return Remedy(
        summary=f"Or bring the CUDA toolkit, or the container's image, to a version that compiles for {gpu}"
        f"{toolkit_span(gpu.capability)}, and take the CuPy for it",
        commands=("nvidia-smi --query-gpu=name,compute_cap --format=csv", "nvcc --list-gpu-arch"),
    )


@fix
def cupy_by_gpu_generation(
    *, python: Python | None, system: System | None, driver: Driver | None, cupy: Cupy | None
) -> tuple[Remedy, ...]:
    """Return which CuPy and toolkit an unknown GPU needs, by its generation."""
    older = install_cupy(python=python, system=system, driver=driver, devices=None, cupy=cupy, cuda_major=12)
    return (
        Remedy(
            summary="For a GPU before Turing (compute capability below 7.5: Maxwell, Pascal, Volta), for which CUDA 13 "
            f"no longer compiles: {older.summary}",
            commands=older.commands,
        ),
        Remedy(
            summary="For a GPU of Blackwell (RTX 50, compute capability 10.0 and newer) CUDA 12.8 or newer is needed; "
            "for one of Ada or Hopper 11.8, of Ampere 11.1: look up which it is, then update toolkit or image",
            commands=("nvidia-smi --query-gpu=name,compute_cap --format=csv",),
            reference="https://developer.nvidia.com/cuda-gpus",
        ),
    )


@fix
def install_numpy_for_cupy(*, requirement: str, installed_fits: bool, python: Python | None) -> tuple[Remedy, ...]:
    """Return how to install the NumPy that CuPy needs; nothing if the requirement cannot be given to pip."""
    if not re.fullmatch(r"[\d.*,<>=!~ ]+", requirement):
        return ()
    return (
        install_packages(
            python=python,
            requirements=(f"numpy{requirement}",),
            force=installed_fits,
            summary=f"Install the NumPy that this CuPy needs ({requirement})",
            verify=VERIFY_NUMPY,
        ),
    )


@fix
def upgrade_cupy_for_numpy(
    *,
    python: Python | None,
    system: System | None,
    driver: Driver | None,
    devices: Sequence[Device] | None,
    cupy: Cupy | None,
) -> Remedy:
    """Return how to install a CuPy for the NumPy and the Python that are here."""
    any_numpy = None if cupy is None else replace(cupy, numpy_version=None)
    newer = install_cupy(python=python, system=system, driver=driver, devices=devices, cupy=any_numpy)
    return replace(newer, summary=f"Upgrade CuPy to one that works with NumPy 2 (13.3 or newer): {newer.summary}")


@fix
def numpy_with_removed_name(*, name: str, cupy_status: CupyStatus, python: Python | None) -> tuple[Remedy, ...]:
    """Return how to install a NumPy that still has `name`; nothing if this CuPy needs NumPy 2, as from 14 on."""
    version = cupy_status.version
    if version is not None and version.release[:1] >= (14,):
        return ()
    limit = "1.24" if name in REMOVED_IN_1_24 else "2"
    return (
        install_packages(
            python=python,
            requirements=(f"numpy<{limit}",),
            summary=f"Install a NumPy before {limit}, as this CuPy needs it",
            verify=VERIFY_NUMPY,
        ),
    )


@fix
def install_cupy_in_new_environment(
    *, system: System | None, driver: Driver | None, devices: Sequence[Device] | None
) -> Remedy:
    """Return how to install CuPy in an environment with a newer Python."""
    install = install_cupy(python=NEW_PYTHON, system=system, driver=driver, devices=devices, cupy=None)
    return Remedy(
        summary="Use an environment with a Python that this CuPy supports, and install CuPy there",
        commands=("python3 -m venv .venv", *install.commands),
        reference="https://docs.cupy.dev/en/stable/install.html#requirements",
    )
