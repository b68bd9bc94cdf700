"""Which gcc each CUDA toolkit accepts."""

from __future__ import annotations

from gpudoctor.model import CudaVersion

# The newest gcc of a toolkit, by the first toolkit with that limit.
# Source: "Host Compiler Support Policy" of the installation guides of CUDA 11.0 to 13.0; host_config.h of CUDA 8.0
# to 10.2.
GCC_LIMITS = (
    (CudaVersion(13, 0), 15),
    (CudaVersion(12, 8), 14),
    (CudaVersion(12, 4), 13),
    (CudaVersion(12, 0), 12),
    (CudaVersion(11, 5), 11),
    (CudaVersion(11, 1), 10),
    (CudaVersion(11, 0), 9),
    (CudaVersion(10, 1), 8),
    (CudaVersion(9, 2), 7),
    (CudaVersion(9, 0), 6),
    (CudaVersion(8, 0), 5),
)
# If neither a message nor a toolkit shows the limit: what every CUDA 12 accepts.
USUAL_LIMIT = 12


def newest_gcc(nvcc: CudaVersion | None) -> int | None:
    """Return the newest major version of gcc that this nvcc accepts; None if that is unknown."""
    return next((newest for first, newest in GCC_LIMITS if nvcc is not None and nvcc >= first), None)


def first_toolkit_for_gcc(major: int) -> CudaVersion | None:
    """Return the first CUDA toolkit that accepts this major version of gcc; None if none of the table does."""
    return min((cuda for cuda, newest in GCC_LIMITS if newest >= major), default=None)
