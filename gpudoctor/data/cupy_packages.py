"""The distributions of CuPy."""

from __future__ import annotations

import functools
from collections.abc import Mapping

from gpudoctor.data.tables import load_table, source_of
from gpudoctor.model.record import record
from gpudoctor.model.versions import CudaVersion


@record
class CupyPackage:
    """One distribution that holds the package cupy.

    platform: "cuda", "rocm" or "source".
    cuda_first, cuda_last: toolkits it is built for; cuda_last None for the whole major.
    maintained: newer versions still come; None where not verified.
    pythons: platform → Python versions with a wheel of the last version; None where not verified.
    """

    name: str
    platform: str
    cuda_major: int | None
    cuda_first: CudaVersion | None
    cuda_last: CudaVersion | None
    rocm: str | None
    last_version: str | None
    maintained: bool | None
    pythons: Mapping[str, tuple[str, ...]] | None
    source: str


@record
class CupyRelease:
    """What one major version of CuPy supports, as its documentation gives it: "12.0-", "1.22-2.3"."""

    major: int
    capability: str
    cuda: str
    rocm: str
    python: str
    numpy: str
    source: str


@record
class RemovedPart:
    """A module or function that CuPy no longer has.

    last: the last major version with it. package: a distribution that has wheels of that version.
    """

    name: str
    last: int
    package: str
    instead: str
    source: str


def cupy_package(name: str) -> CupyPackage | None:
    """Return the distribution of that normalised name; None where the table does not know it."""
    return _packages().get(name)


def cupy_packages() -> tuple[CupyPackage, ...]:
    """Return every distribution that holds the package cupy."""
    return tuple(_packages().values())


def cupy_release(major: int) -> CupyRelease | None:
    """Return what CuPy `major` supports; None for one outside the table."""
    table = load_table("cupy_packages")
    for row in table["releases"]:
        if row["cupy"] == major:
            return CupyRelease(
                major=major,
                capability=row["capability"],
                cuda=row["cuda"],
                rocm=row["rocm"],
                python=row["python"],
                numpy=row["numpy"],
                source=source_of(table, row),
            )
    return None


def removed_from_cupy(name: str) -> RemovedPart | None:
    """Return what is known of a part that CuPy has no longer, "cupy.util"; None for others."""
    table = load_table("cupy_packages")
    for row in table["removed"]:
        if row["name"] == name:
            return RemovedPart(**{**row, "source": source_of(table, row)})
    return None


@functools.cache
def _packages() -> Mapping[str, CupyPackage]:
    table = load_table("cupy_packages")
    return {
        row["name"]: CupyPackage(
            name=row["name"],
            platform=row["platform"],
            cuda_major=row["cuda_major"],
            cuda_first=None if row["cuda_first"] is None else CudaVersion.parse(row["cuda_first"]),
            cuda_last=None if row["cuda_last"] is None else CudaVersion.parse(row["cuda_last"]),
            rocm=row["rocm"],
            last_version=row["last_version"],
            maintained=row["maintained"],
            pythons=None if row["pythons"] is None else {key: tuple(tags) for key, tags in row["pythons"].items()},
            source=source_of(table, row),
        )
        for row in table["packages"]
    }
