"""Packages around CUDA: those with compiled extensions, those that install one module, and the wheels of CuPy."""

import re
from collections.abc import Mapping, Sequence

from gpudoctor.data.tables import load_table, records
from gpudoctor.model import CudaVersion, PackageVersion
from gpudoctor.model.record import record

# Packages that are often compiled with nvcc when they are installed. deepspeed compiles when it runs.
EXTENSIONS = (
    *("flash-attn", "xformers", "apex", "torch-scatter", "torch-sparse", "torch-cluster", "torch-spline-conv"),
    *("pyg-lib", "causal-conv1d", "mamba-ssm", "detectron2", "pytorch3d", "nvdiffrast", "gsplat", "tinycudann"),
    *("diff-gaussian-rasterization", "transformer-engine", "deepspeed"),
)
COMPILED_AT_RUN_TIME = ("deepspeed",)
# For these are torchvision-mismatch and the checks of CUDA's libraries; libtorch itself is not an extension.
NOT_EXTENSIONS = ("torchvision", "torchaudio", "libtorch", "libc10", "libcud", "libnccl", "libcublas", "cupy")
FIRST_TORCH_WITH_NUMPY_2 = (2, 3)  # Source: release notes of PyTorch 2.3


@record
class SharedModule:
    """A module, the distributions that install it, and the one to keep with and without an NVIDIA GPU."""

    name: str
    distributions: tuple[str, ...]
    with_gpu: str
    without_gpu: str


@record
class CupyRelease:
    """What one major version of CuPy supports, as its documentation gives it: "2.0-", "1.22-2.3"."""

    cupy: int
    numpy: str


@record
class RemovedPart:
    """A module or function that CuPy no longer has.

    last: the last major version with it. package: a distribution that has wheels of that version.
    """

    name: str
    last: int
    package: str
    instead: str


def extension_distributions() -> tuple[str, ...]:
    """Return the distributions whose compiled files are known."""
    return tuple(row["distribution"] for row in load_table("packages")["extensions"])


def distribution_of(place: str) -> str:
    """Return the distribution that a compiled file, module or folder belongs to, "" if it is unknown."""
    rows = load_table("packages")["extensions"]
    return next((row["distribution"] for row in rows if any(mark in place for mark in row["marks"])), "")


def first_bitsandbytes(cuda: CudaVersion) -> tuple[int, ...] | None:
    """Return the first version of bitsandbytes with a library for this CUDA version; None if all have one."""
    rows = load_table("packages")["bitsandbytes"]
    return next(
        (PackageVersion(row["version"]).release for row in rows if cuda >= CudaVersion.parse(row["cuda"])), None
    )


def shared_modules() -> tuple[SharedModule, ...]:
    """Return the modules that several distributions install."""
    return records(SharedModule, "packages", "shared_modules")


def cupy_pythons(name: str) -> Mapping[str, Sequence[str]] | None:
    """Return platform → Python versions with a wheel of the distribution's last version; None if unknown."""
    rows = load_table("cupy_packages")["packages"]
    return next((row["pythons"] for row in rows if row["name"] == name), None)


def cupy_release(major: int) -> CupyRelease | None:
    """Return what CuPy `major` supports; None for one outside the table."""
    rows = records(CupyRelease, "cupy_packages", "releases")
    return next((row for row in rows if row.cupy == major), None)


def removed_from_cupy(name: str) -> RemovedPart | None:
    """Return the table row of a part that CuPy removed, such as "cupy.util"; None for other parts."""
    return next((row for row in records(RemovedPart, "cupy_packages", "removed") if row.name == name), None)


def cuda_major(name: str) -> int | None:
    """Return the CUDA major version in a distribution's name: 12 of cupy-cuda12x, 11 of cupy-cuda115."""
    match = re.fullmatch(r"cupy-cuda(?:(\d{1,2})x|(\d{1,2})\d)", name)
    return int(match[1] or match[2]) if match else None
