"""The CUDA builds of PyTorch: which exist, for which devices, Pythons and platforms, and what belongs to them."""

import functools
from collections.abc import Mapping
from dataclasses import field
from typing import Any

from gpudoctor.data.capabilities import runs_on
from gpudoctor.data.tables import load_table, records, source_of
from gpudoctor.model.record import record
from gpudoctor.model.versions import ComputeCapability, CudaVersion

INDEX = "https://download.pytorch.org/whl"


@record
class TorchRelease:
    """A release of PyTorch on PyPI.

    versions: every patch version, oldest first.
    pythons: platform → Python versions with a wheel ("3.13", "3.13t" for free-threaded).
    default: platform → the build that PyPI carries: "cu130" or "cpu".
    last_with: Python version → the last patch version with wheels for it, if that is not the newest.
    """

    release: str
    versions: tuple[str, ...]
    pythons: Mapping[str, tuple[str, ...]]
    default: Mapping[str, str | None]
    last_with: Mapping[str, str] = field(default_factory=dict)


@record
class TorchBuild:
    """One CUDA build of a PyTorch release.

    version: the newest patch version.
    architectures: machine code inside, on Linux x86_64; `platform_architectures` has the others.
    available: None if only a build script names it and no index was seen with it.
    minimum_glibc: (2, 28), by the manylinux tag of the wheels.
    """

    release: str
    version: str
    variant: str
    cuda: CudaVersion
    architectures: tuple[str, ...]
    platform_architectures: Mapping[str, tuple[str, ...]]
    pypi_default: bool
    available: bool | None
    experimental: bool
    pythons: Mapping[str, tuple[str, ...]]
    minimum_glibc: tuple[int, ...]
    source: str

    def runs_on(self, capability: ComputeCapability) -> bool:
        """Return whether it is published for a platform with code for devices of this compute capability."""
        platforms = (self.architectures, *self.platform_architectures.values())
        return self.available is not False and any(runs_on(names, capability, self.cuda) for names in platforms)


@record
class Companions:
    """The versions of torchvision and torchaudio that belong to one version of torch; None if not verified.

    torchaudio_variants: builds that exist of this torchaudio; None for those of torch.
    """

    torch: str
    torchvision: str | None
    torchaudio: str | None
    torchaudio_variants: tuple[str, ...] | None = None


def torch_releases() -> tuple[TorchRelease, ...]:
    """Return every release in the table, oldest first."""
    return records(TorchRelease, "torch_builds", "releases")


@functools.cache
def torch_builds(release: str | None = None) -> tuple[TorchBuild, ...]:
    """Return the CUDA builds of a release such as "2.13", or of all, oldest release and lowest CUDA first."""
    return tuple(build for build in _builds() if release is None or build.release == release)


def torch_companions(version: str) -> Companions | None:
    """Return what belongs to the torch version "2.13.0"; None for one outside the table."""
    rows = records(Companions, "torch_builds", "companions")
    return next((row for row in rows if row.torch == version), None)


@functools.cache
def _builds() -> tuple[TorchBuild, ...]:
    table = load_table("torch_builds")
    return tuple(_build(table, row) for row in table["builds"])


def _build(table: Mapping[str, Any], row: Mapping[str, Any]) -> TorchBuild:
    release = next(release for release in torch_releases() if release.release == row["release"])
    lists = {
        "linux_x86_64": row["architectures"],
        "windows_amd64": row.get("windows", row["architectures"]),
        "linux_aarch64": row.get("aarch64"),
    }
    return TorchBuild(
        release=row["release"],
        version=release.versions[-1],
        variant=row["variant"],
        cuda=CudaVersion.parse(row["cuda"]),
        architectures=tuple(row["architectures"]),
        platform_architectures={platform: tuple(listed) for platform, listed in lists.items() if listed},
        pypi_default=release.default["linux_x86_64"] == row["variant"],
        available=row.get("available", True),
        experimental=row.get("experimental", False),
        pythons=release.pythons,
        minimum_glibc=tuple(int(part) for part in row["glibc"].split(".")),
        source=source_of(table, row),
    )
