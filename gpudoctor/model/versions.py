"""Version numbers as values that compare: never compare versions as text."""

from __future__ import annotations

import re
from typing import NamedTuple


class CudaVersion(NamedTuple):
    """A CUDA version of a toolkit, a build or a driver, such as 12.4."""

    major: int
    minor: int

    @classmethod
    def parse(cls, text: str) -> CudaVersion:
        """Return the version in "12.4", "12.4.127", "12" or "V12.4".

        Raises:
            ValueError: the text holds no such version.
        """
        match = re.match(r"\s*[vV]?(\d{1,3})(?:\.(\d{1,3}))?(?![\w])", text)
        if match is None:
            raise ValueError(f"not a CUDA version: {text!r}")
        return cls(int(match[1]), int(match[2] or 0))

    @classmethod
    def from_number(cls, number: int) -> CudaVersion:
        """Return the version that CUDA's APIs code as 1000 * major + 10 * minor (12040 is 12.4)."""
        return cls(number // 1000, number % 1000 // 10)

    @property
    def tag(self) -> str:
        """The name of PyTorch's build variant for this version: "cu124"."""
        return f"cu{self.major}{self.minor}"

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"


class DriverVersion(NamedTuple):
    """A version of the NVIDIA driver, such as 535.129.03."""

    parts: tuple[int, ...]

    @classmethod
    def parse(cls, text: str) -> DriverVersion:
        """Return the version in "535.129.03" or "535".

        Raises:
            ValueError: the text holds no such version.
        """
        match = re.fullmatch(r"\s*[rR]?(\d{2,4}(?:\.\d{1,4}){0,3})\s*", text)
        if match is None:
            raise ValueError(f"not a driver version: {text!r}")
        return cls(tuple(int(part) for part in match[1].split(".")))

    @property
    def branch(self) -> str:
        """The release branch that the driver belongs to: "R535"."""
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
            ValueError: the text holds none.
        """
        match = re.fullmatch(r"\s*(?:(\d{1,2})\.(\d)|(?:sm_|compute_)(\d{1,2})(\d)[af]?)\s*", text)
        if match is None:
            raise ValueError(f"not a compute capability: {text!r}")
        return cls(int(match[1] or match[3]), int(match[2] or match[4]))

    @property
    def sm(self) -> str:
        """The name of the architecture that machine code is built for: "sm_86"."""
        return f"sm_{self.major}{self.minor}"

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"


class PackageVersion(NamedTuple):
    """A version of a Python package, such as 2.13.0+cu130. Compare `release`; `text` is the version whole."""

    text: str

    @property
    def release(self) -> tuple[int, ...]:
        """The release numbers: (2, 13, 0) of "2.13.0+cu130"; () where the text starts with none."""
        match = re.match(r"\s*[vV]?(\d+(?:\.\d+)*)", self.text)
        return tuple(int(part) for part in match[1].split(".")) if match else ()

    @property
    def public(self) -> str:
        """The version without its local part: "2.13.0" of "2.13.0+cu130"."""
        return self.text.partition("+")[0]

    @property
    def local(self) -> str:
        """The local part: "cu130" of "2.13.0+cu130"; "" where there is none."""
        return self.text.partition("+")[2]

    @property
    def minor_release(self) -> str:
        """The release up to its second number: "2.13" of "2.13.0+cu130"."""
        return ".".join(str(part) for part in self.release[:2])

    def __str__(self) -> str:
        return self.text
