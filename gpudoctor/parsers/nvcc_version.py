"""The output of `nvcc --version`."""

from __future__ import annotations

import re

from gpudoctor.model.versions import CudaVersion


def parse_nvcc_version(text: str) -> CudaVersion:
    """Return the CUDA version in "Cuda compilation tools, release 12.4, V12.4.131".

    Raises:
        ValueError: the text names no release.
    """
    match = re.search(r"Cuda compilation tools, release (\d+\.\d+)", text)
    if match is None:
        raise ValueError(f"no release of nvcc: {text[:200]!r}")
    return CudaVersion.parse(match[1])
