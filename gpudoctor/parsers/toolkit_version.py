"""The version that a CUDA toolkit's folder carries: version.json (since 11.1), version.txt (before), or its name."""

from __future__ import annotations

import json
import re

from gpudoctor.model.versions import CudaVersion


def parse_version_json(text: str) -> CudaVersion:
    """Return the CUDA version of a version.json.

    Raises:
        ValueError: the text is no such file.
    """
    try:
        return CudaVersion.parse(json.loads(text)["cuda"]["version"])
    except (KeyError, TypeError, RecursionError):
        raise ValueError(f"no CUDA version in version.json: {text[:200]!r}") from None


def parse_version_txt(text: str) -> CudaVersion:
    """Return the CUDA version in "CUDA Version 10.1.243".

    Raises:
        ValueError: the text is no such file.
    """
    match = re.search(r"CUDA Version (\d+\.\d+)", text)
    if match is None:
        raise ValueError(f"no CUDA version in version.txt: {text[:200]!r}")
    return CudaVersion.parse(match[1])


def parse_folder_name(path: str) -> CudaVersion:
    """Return the CUDA version in the name of the folder "/usr/local/cuda-12.4".

    Raises:
        ValueError: the name holds no version with a minor number.
    """
    match = re.search(r"cuda[-_\\/]?v?(\d{1,2}\.\d{1,2})(?:\.\d+)*/?$", path, re.IGNORECASE)
    if match is None:
        raise ValueError(f"no CUDA version in {path!r}")
    return CudaVersion.parse(match[1])
