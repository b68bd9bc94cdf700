"""CUDA's libraries, by the names of their files, and the host compilers that its toolkits accept."""

import functools
import re
from collections.abc import Mapping
from typing import Any

from gpudoctor.data.tables import load_table
from gpudoctor.model import CudaVersion, PackageVersion

_ALWAYS_SUFFIXED = ("nvidia-nccl", "nvidia-cusparselt", "nvidia-cudnn", "nvidia-nvshmem")

# CUDA major version by library and number in its name, if the two differ.
# Source: sonames in the wheels of CUDA 11.8, 12.9 and 13.0.
_MAJORS = {("cufft", 10): 11, ("cufft", 11): 12, ("cufft", 12): 13}
_SHARED = ("curand", "cusolver", "cudnn")  # one number for several CUDA versions, which one of them has too

# If neither a message nor a toolkit shows the limit: what every CUDA 12 accepts.
USUAL_GCC_LIMIT = 12


FIRST_CUDA_WITH_WHEELS, NEWEST_CUDA_WITH_WHEELS = 11, 13


@functools.cache
def _wheels() -> Mapping[str, Mapping[str, Any]]:
    """Return library → the row of its wheel, named without the ending "-cu12" that those for CUDA 13 no longer have."""
    return {row["library"]: row for row in load_table("packages")["wheels"]}


def library_stem(name: str) -> str | None:
    """Return the library that a file belongs to: "cublas" of libcublas.so.12 and cublas64_12.dll; None for others."""
    match = re.match(r"(?:lib)?([A-Za-z]+(?:_host)?)(?=64_|[._-])", name)
    stem = match[1].lower() if match else ""
    return stem if stem in _wheels() else None


def cuda_major_of(name: str) -> int | None:
    """Return the CUDA major version that a library belongs to: 12 of libcublas.so.12, 11 of libcudart.so.11.0."""
    stem = library_stem(name)
    match = re.search(r"\.so\.(\d{1,3})|64_(\d{2})", name)
    if stem is None or match is None or stem in _SHARED:
        return None
    number = int(match[1] or match[2])
    if (stem, number) in _MAJORS:
        return _MAJORS[stem, number]
    return number if 9 <= number <= 19 else None


def wheel_of(stem: str, cuda_major: int) -> str | None:
    """Return the wheel of a library for a CUDA major version: "nvidia-cublas-cu12"; for 13 "nvidia-cublas".

    None if PyPI has none, or the table does not know it: anybody could register such a name.
    Source: "python -m pip index versions" of nvidia-cuda-runtime-cu10, nvidia-cufile-cu11.
    """
    row = _wheels()[stem]
    if not row.get("first", FIRST_CUDA_WITH_WHEELS) <= cuda_major <= NEWEST_CUDA_WITH_WHEELS:
        return None
    name = row["wheel"]
    return f"{name}-cu{cuda_major}" if cuda_major <= 12 or name in _ALWAYS_SUFFIXED else name


# The first PyTorch that needs cuDNN 9; before, 8. Source: release notes of PyTorch 2.4; METADATA of its wheels.
FIRST_TORCH_WITH_CUDNN_9 = (2, 4)


def cudnn_of_torch(version: PackageVersion | None) -> int | None:
    """Return the major version of cuDNN that this PyTorch needs."""
    if version is None or not version.release:
        return None
    return 9 if version.release[:2] >= FIRST_TORCH_WITH_CUDNN_9 else 8


def cudnn_version(text: str) -> tuple[int, ...]:
    """Return the version of cuDNN in any of its forms: "(8, 5, 0)", "8.5.0", "8500", "91002"; () for none.

    Source: CUDNN_VERSION in cudnn_version.h: 10000 * major + 100 * minor + patch from 9 on, 1000 * major before.
    """
    numbers = tuple(int(number) for number in re.findall(r"\d+", text))
    if len(numbers) == 1 and numbers[0] >= 1000:
        number = numbers[0]
        major = 10000 if number >= 90000 else 1000
        return number // major, number % major // 100, number % 100
    return numbers


def newest_gcc(nvcc: CudaVersion | None) -> int | None:
    """Return the newest major version of gcc that this nvcc accepts; None if that is unknown."""
    return next((newest for first, newest in gcc_limits() if nvcc is not None and nvcc >= first), None)


def first_toolkit_for_gcc(major: int) -> CudaVersion | None:
    """Return the first CUDA toolkit that accepts this major version of gcc; None if none of the table does."""
    return min((cuda for cuda, newest in gcc_limits() if newest >= major), default=None)


def gcc_limits() -> list[tuple[CudaVersion, int]]:
    """Return the first toolkit with each limit, and the newest gcc that it accepts, newest toolkit first."""
    return [(CudaVersion.parse(row["cuda"]), row["gcc"]) for row in load_table("packages")["host_compilers"]]


def first_apt_toolkit(distribution: str | None, version: str | None) -> CudaVersion | None:
    """Return the first toolkit in NVIDIA's apt repository for a distribution release; None if that is not verified."""
    found = {(row["distribution"], row["version"]): row["first"] for row in load_table("packages")["apt_toolkits"]}
    return CudaVersion.parse(found[distribution, version]) if (distribution, version) in found else None


# cuDNN 9.11 dropped Maxwell, Pascal and Volta. Source: https://github.com/conda-forge/cudnn-feedstock/issues/124
FIRST_CUDNN_WITHOUT_VOLTA = "9.11"
