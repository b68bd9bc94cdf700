"""The names of conda's package records: conda-meta/pytorch-2.5.1-cuda126_py312h_0.json."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

_RECORD = r"([a-z0-9_][a-z0-9_.-]{0,98}?)-([A-Za-z0-9.!+_]{1,64})-([A-Za-z0-9._+]{1,100})"


class CondaRecord(NamedTuple):
    """A package that conda installed, with the build string that tells its variant."""

    name: str
    version: str
    build: str


def parse_conda_record(text: str) -> CondaRecord | None:
    """Return the record in "pytorch-2.5.1-cuda126_py312h_0", None where the text is none.

    Source: conda's distribution strings; neither version nor build may hold a hyphen.
    """
    match = re.fullmatch(_RECORD, text)
    return CondaRecord(match[1], match[2], match[3]) if match else None


def torch_record(records: Iterable[CondaRecord]) -> CondaRecord | None:
    """Return conda's package of PyTorch itself, None where it has none."""
    return next((record for record in records if record.name == "pytorch"), None)


def is_cpu_only(records: Iterable[CondaRecord]) -> bool:
    """Tell whether `cpuonly` or a mutex that chooses the CPU build is among the packages.

    The channel pytorch uses pytorch-mutex (build "cpu"), defaults _pytorch_select (build "cpu_0") and conda-forge
    pytorch-cpu.
    """
    return any(
        record.name in ("cpuonly", "pytorch-cpu")
        or (record.name in ("pytorch-mutex", "_pytorch_select") and record.build.startswith("cpu"))
        for record in records
    )


def cuda_major(records: Iterable[CondaRecord]) -> int | None:
    """Return the CUDA major version that conda's packages are for, None where no package tells."""
    versions = {record.name: record.version for record in records}
    text = versions.get("cuda-version") or versions.get("cudatoolkit") or ""
    match = re.match(r"(\d{1,2})(?:\.|$)", text)
    return int(match[1]) if match else None
