"""Repair CuPy: an incomplete package, missing libraries and headers, a NumPy that fits."""

import re
from dataclasses import replace

from gpudoctor.data.capabilities import is_before_kepler, toolkit_span
from gpudoctor.data.cuda_libraries import cuda_major_of, library_stem
from gpudoctor.data.packages import removed_from_cupy
from gpudoctor.model import Cupy, CupyStatus, Fix, KnownGpu, Package, PackageVersion, Python, Remedy
from gpudoctor.remedies.cupy_install import USUAL, install_cupy
from gpudoctor.remedies.fixes import Machine, fix

VERIFY_NUMPY = "import numpy, cupy; print(numpy.__version__, cupy.__version__)"
# Names that NumPy 1.24 removed; NumPy 2 removed the others. Source: release notes of NumPy 1.24.
REMOVED_IN_1_24 = ("bool", "int", "float", "object", "complex", "str", "typeDict")
# The interpreter in the environment to create if Python is too old.
NEW_PYTHON = Python(executable=".venv/bin/python", installer="pip")


@fix
def reinstall_cupy(*, machine: Machine, cupy: Cupy) -> Remedy:
    """Return how to remove every CuPy distribution and install the one that fits."""
    there = cupy.distributions or ()
    others = [name for name in USUAL if name not in {package.name for package in there}]
    every = (*there, *(Package(name=name, version=PackageVersion("")) for name in others))
    with_every = replace(cupy, distributions=every)
    remedy: Remedy = machine.call(install_cupy, cupy=with_every)
    return replace(
        remedy,
        summary="Uninstall every CuPy that pip list names, delete what is left of the folder cupy, then: "
        + remedy.summary,
        needs=(),
    )


@fix
def install_older_cupy(*, part: str, cupy: Cupy) -> Fix:
    """Return how to install a CuPy that still has the part, for a program that cannot be changed."""
    removed = removed_from_cupy(part)
    assert removed is not None  # checks name only parts in the table
    return Fix(
        "install-packages",
        requirements=(f"{removed.package}<{removed.last + 1}",),
        remove=[package.name for package in cupy.distributions or ()],
        summary=f"Update the program, or change it to use {removed.instead}. Or install a CuPy before "
        f"{removed.last + 1} for the installed CUDA and Python (Chainer 7 needs CuPy 7)",
        verify="import cupy; print(cupy.__version__)",
    )


@fix
def install_library_for_cupy(*, library: str, cupy: Cupy) -> Fix:
    """Return how to give CuPy a CUDA library, named by its file or only "cublas"."""
    name = library if "." in library else f"lib{library.removeprefix('lib')}.so"
    major = cupy.cuda_major
    if library_stem(name) == "nvrtc" and cuda_major_of(name) is None and major is not None:
        name = f"libnvrtc.so.{major}"
    return Fix("install-cuda-library", name=name, pytorch=None)


@fix
def install_cupy_for_spacy(*, machine: Machine) -> tuple[Remedy | Fix, ...]:
    """Return how to install the CuPy that spaCy does not find, and how to see why an installed CuPy fails."""
    install: Remedy = machine.call(install_cupy)
    return replace(install, reference="https://spacy.io/usage#gpu"), Fix("see-what-cupy-says")


@fix
def toolkit_for_gpu(*, gpu: KnownGpu) -> Remedy:
    """Return how to get a toolkit whose NVRTC compiles for the GPU, if one in the table does."""
    if is_before_kepler(gpu.capability):
        summary = f"No CUDA toolkit after 8.0 compiles for {gpu}: run on a newer GPU, or on the CPU with NumPy"
        return Remedy(summary=summary, commands=("nvidia-smi --query-gpu=name,compute_cap --format=csv",))
    return Remedy(
        summary=f"Update the CUDA toolkit, or the container's image, to a version that compiles for {gpu}"
        f"{toolkit_span(gpu.capability)}, and install the matching CuPy package",
        commands=("nvidia-smi --query-gpu=name,compute_cap --format=csv", "nvcc --list-gpu-arch"),
    )


@fix
def cupy_by_gpu_generation(*, machine: Machine) -> tuple[Remedy | Fix, ...]:
    """Return which CuPy and toolkit an unknown GPU needs, by GPU generation."""
    older: Remedy = machine.call(install_cupy, devices=None, cuda_major=12)
    text = "For a GPU before Turing (compute capability below 7.5: Maxwell, Pascal, Volta), for which CUDA 13 no longer"
    return replace(older, summary=f"{text} compiles: {older.summary}", reference=None), Fix("choose-cuda-by-gpu")


@fix
def install_numpy_for_cupy(*, requirement: str, installed_fits: bool) -> tuple[Fix, ...]:
    """Return how to install the NumPy that CuPy needs; nothing if pip cannot take the requirement."""
    if not re.fullmatch(r"[\d.*,<>=!~ ]+", requirement):
        return ()
    summary = f"Install the NumPy that this CuPy needs ({requirement})"
    return (_numpy(requirement, summary, force=installed_fits),)


def _numpy(requirement: str, summary: str, force: bool = False) -> Fix:
    return Fix(
        "install-packages", requirements=(f"numpy{requirement}",), force=force, summary=summary, verify=VERIFY_NUMPY
    )


@fix
def upgrade_cupy_for_numpy(*, machine: Machine, cupy: Cupy) -> Remedy:
    """Return how to install a CuPy for the installed NumPy and Python."""
    newer: Remedy = machine.call(install_cupy, cupy=replace(cupy, numpy_version=None))
    return replace(newer, summary=f"Upgrade CuPy to one that works with NumPy 2 (13.3 or newer): {newer.summary}")


@fix
def numpy_with_removed_name(*, name: str, cupy_status: CupyStatus) -> tuple[Fix, ...]:
    """Return how to install a NumPy that still has `name`; nothing if this CuPy needs NumPy 2, as 14 and newer do."""
    version = cupy_status.version
    if version is not None and version.release[:1] >= (14,):
        return ()
    limit = "1.24" if name in REMOVED_IN_1_24 else "2"
    return (_numpy(f"<{limit}", f"Install a NumPy version below {limit}, which this CuPy needs"),)


@fix
def install_cupy_in_new_environment(*, machine: Machine) -> Remedy:
    """Return how to install CuPy in an environment with a newer Python."""
    install: Remedy = machine.call(install_cupy, python=NEW_PYTHON, cupy=Cupy())
    return Remedy(
        summary="Use an environment with a Python that this CuPy supports, and install CuPy there",
        commands=("python3 -m venv .venv", *install.commands),
        reference="https://docs.cupy.dev/en/stable/install.html#requirements",
    )
