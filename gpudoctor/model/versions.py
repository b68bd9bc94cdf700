"""Version numbers as values that compare: never compare versions as text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache, total_ordering
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from packaging.version import Version


class CudaVersion(NamedTuple):
    """A CUDA version of a toolkit, a build or a driver, such as 12.4."""

    major: int
    minor: int

    @classmethod
    def parse(cls, text: str) -> CudaVersion:
        """Return the version in "12.4", "12.4.127", "12" or "V12.4".

        Raises:
            ValueError: the text contains no such version.
        """
        match = re.match(r"\s*[vV]?(\d{1,3})(?:\.(\d{1,3}))?(?![\w])", text)
        if match is None:
            raise ValueError(f"not a CUDA version: {text!r}")
        return cls(int(match[1]), int(match[2] or 0))

    @classmethod
    def from_number(cls, number: int) -> CudaVersion:
        """Return the version that CUDA's APIs encode as 1000 * major + 10 * minor (12040 is 12.4)."""
        return cls(number // 1000, number % 1000 // 10)

    @classmethod
    def of_tag(cls, text: str) -> CudaVersion | None:
        """Return the version in the name of a PyTorch build variant: 13.0 for "cu130"; None for another name."""
        match = re.match(r"cu(\d{1,2})(\d)(?!\d)", text)
        return cls(int(match[1]), int(match[2])) if match else None

    @property
    def tag(self) -> str:
        """The name of the PyTorch build variant for this version: "cu124"."""
        return f"cu{self.major}{self.minor}"

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"


class DriverVersion(NamedTuple):
    """An NVIDIA driver version, such as 535.129.03."""

    parts: tuple[int, ...]

    @classmethod
    def parse(cls, text: str) -> DriverVersion:
        """Return the version in "535.129.03" or "535". Raises ValueError: the text contains no such version."""
        match = re.fullmatch(r"\s*[rR]?(\d{2,4}(?:\.\d{1,4}){0,3})\s*", text)
        if match is None:
            raise ValueError(f"not a driver version: {text!r}")
        return cls(tuple(int(part) for part in match[1].split(".")))

    @property
    def branch(self) -> str:
        """The driver's release branch: "R535"."""
        return f"R{self.parts[0]}"

    def __str__(self) -> str:
        first, *rest = self.parts
        return ".".join([str(first), *(f"{part:02d}" for part in rest)])


class ComputeCapability(NamedTuple):
    """The compute capability of a device, such as 8.6."""

    major: int
    minor: int

    @classmethod
    def parse(cls, text: str) -> ComputeCapability:
        """Return the capability in "8.6", "sm_86", "compute_120" or "sm_90a".

        Raises:
            ValueError: the text contains none.
        """
        match = re.fullmatch(r"\s*(?:(\d{1,2})\.(\d)|(?:sm_|compute_)(\d{1,2})(\d)[af]?)\s*", text)
        if match is None:
            raise ValueError(f"not a compute capability: {text!r}")
        return cls(int(match[1] or match[3]), int(match[2] or match[4]))

    @property
    def sm(self) -> str:
        """The architecture name for machine code: "sm_86"."""
        return f"sm_{self.major}{self.minor}"

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"


@total_ordering
@dataclass(frozen=True, eq=False)
class PackageVersion:
    """A package version, such as 2.13.0+cu130, compared by PEP 440.

    A text that is not a PEP 440 version ("2.5.1-py3.12_cuda12.4", "nightly") is kept and compares by its leading
    numbers: after the version with only these numbers, and before every other version if there are none.
    """

    text: str

    @property
    def release(self) -> tuple[int, ...]:
        """The release numbers: (2, 13, 0) for "2.13.0+cu130"; () without leading numbers."""
        if re.fullmatch(r"[0-9]{1,18}(?:\.[0-9]{1,18}){0,9}", self.text):  # importing packaging takes 5 ms
            return tuple(map(int, self.text.split(".")))
        version = _parsed(self.text)
        return version.release if version is not None else ()

    @property
    def public(self) -> str:
        """The version without its local part: "2.13.0" for "2.13.0+cu130"."""
        version = _valid(self.text)
        return version.public if version is not None else self.text.partition("+")[0]

    @property
    def local(self) -> str:
        """The local part: "cu130" for "2.13.0+cu130"; "" without one."""
        version = _valid(self.text) if "+" in self.text else None
        return (version.local or "") if version is not None else self.text.partition("+")[2]

    @property
    def minor_release(self) -> str:
        """The release up to its second number: "2.13" for "2.13.0+cu130"."""
        return ".".join(str(part) for part in self.release[:2])

    def agrees_with(self, other: PackageVersion) -> bool:
        """Return whether both may be the same version, one in a shorter form: "2.13" and "2.13.0+cu130".

        The release is compared number by number. Parts that only one of them has (further numbers, "rc1", "+cu130")
        are ignored.
        """
        mine, others = _parsed(self.text), _parsed(other.text)
        if mine is None or others is None:
            return self.text == other.text
        numbers = zip((mine.epoch, *mine.release), (others.epoch, *others.release), strict=False)
        rest = ((_suffix(mine), _suffix(others)), (self.local, other.local))
        return all(one == two for one, two in numbers) and all(not one or not two or one == two for one, two in rest)

    def __eq__(self, other: object) -> bool:
        return self._key == other._key if isinstance(other, PackageVersion) else NotImplemented

    def __lt__(self, other: PackageVersion) -> bool:
        return self._key < other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple[bool, Any, str]:
        version = _parsed(self.text)
        return version is not None, version or "", "" if _valid(self.text) is not None else self.text

    def __str__(self) -> str:
        return self.text


@lru_cache(maxsize=4096)
def _valid(text: str) -> Version | None:
    """Return the version if the text is valid by PEP 440. The import is here because `--help` does not need it."""
    from packaging.version import Version

    try:
        return Version(text)
    except ValueError:
        return None


def _parsed(text: str) -> Version | None:
    """Return the version, otherwise that of the leading numbers; None without them."""
    match = re.match(r"\s*[vV]?(\d{1,18}(?:\.\d{1,18}){0,9})", text)
    return _valid(text) or (_valid(match[1]) if match else None)


def _suffix(version: Version) -> str:
    """Return the part after the release numbers: "rc1", ".dev20250101"; "" for a final release."""
    return version.public.removeprefix(version.base_version)
