"""The wheels of CuPy, what each release supports, and what it no longer has."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from gpudoctor.data.tables import load_table
from gpudoctor.model.record import record


@record
class CupyRelease:
    """What one major version of CuPy supports, as its documentation gives it: "2.0-", "1.22-2.3"."""

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


def cupy_pythons(name: str) -> Mapping[str, Sequence[str]] | None:
    """Return platform → Python versions with a wheel of the distribution's last version; None where unknown."""
    rows = load_table("cupy_packages")["packages"]
    return next((row["pythons"] for row in rows if row["name"] == name), None)


def cupy_release(major: int) -> CupyRelease | None:
    """Return what CuPy `major` supports; None for one outside the table."""
    rows = load_table("cupy_packages")["releases"]
    return next((CupyRelease(numpy=row["numpy"]) for row in rows if row["cupy"] == major), None)


def removed_from_cupy(name: str) -> RemovedPart | None:
    """Return what is known of a part that CuPy has no longer, "cupy.util"; None for others."""
    for row in load_table("cupy_packages")["removed"]:
        if row["name"] == name:
            return RemovedPart(name=name, last=row["last"], package=row["package"], instead=row["instead"])
    return None


def cuda_major(name: str) -> int | None:
    """Return the CUDA major version in a distribution's name: 12 of cupy-cuda12x, 11 of cupy-cuda115."""
    match = re.fullmatch(r"cupy-cuda(?:(\d{1,2})x|(\d{1,2})\d)", name)
    return int(match[1] or match[2]) if match else None
