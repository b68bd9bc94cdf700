"""What is concluded of CuPy: what is installed, for which CUDA, with which NumPy, and what its compiler knows."""

from __future__ import annotations

from typing import Annotated

from gpudoctor.model.fact import Fact
from gpudoctor.model.record import record
from gpudoctor.model.symptom import Symptom
from gpudoctor.model.versions import PackageVersion


@record
class CupyStatus:
    """CuPy, merged from its files and from its import."""

    installed: bool | None = None
    absent: Annotated[bool, Fact("Python finds no module cupy, whatever is installed elsewhere")] = False
    works: Annotated[bool, Fact("it was imported, compiled a kernel and ran it")] = False
    name: Annotated[str, Fact('for a sentence: "cupy-cuda12x 13.6.0"')] = "CuPy"
    version: PackageVersion | None = None
    cuda_major: Annotated[int | None, Fact("CUDA major version that it is for")] = None
    cuda_fact: Annotated[str, Fact("path of the fact that shows its CUDA major version")] = "cupy.cuda_major"
    removed_part: Annotated[str, Fact('part that a program asks for and this CuPy no longer has: "cupy.util"')] = ""
    incomplete: Annotated[bool, Fact("its folder does not hold all of one version")] = False


@record
class CupyMismatch:
    """What CuPy does not fit.

    kind: "symbol", "rocm-symbol", "driver", "library", "doubted", "newer-libraries", "toolkit" or "all-else".
    summary: the same as a sentence. certain: an error, or all that is there, shows it; else the versions suggest it.
    cuda_major: of the CuPy that would fit, unless the driver decides that.
    """

    kind: str
    summary: str
    facts: tuple[str, ...]
    certain: bool = True
    cuda_major: int | None = None


@record
class CupyMismatches:
    """Where CuPy and the CUDA that is here differ."""

    by_message: Annotated[CupyMismatch | None, Fact("as a message shows it")] = None
    by_version: Annotated[CupyMismatch | None, Fact("as the versions of libraries and toolkits show it")] = None


@record
class CupyNumpy:
    """The NumPy that is installed and the one that CuPy needs."""

    version: Annotated[PackageVersion | None, Fact("NumPy's version")] = None
    version_fact: str = ""
    requirement: Annotated[str, Fact('NumPy versions that CuPy needs: ">=2.0,<3"; empty if unknown')] = ""
    requirement_fact: str = ""
    fits: Annotated[bool | None, Fact("whether the requirement allows the version")] = None
    failure: Annotated[
        Symptom | None, Fact("the message in which CuPy fails because of NumPy, or of a Python that does not fit")
    ] = None


@record
class Compiler:
    """A run-time compiler and the architectures that it compiles for."""

    architectures: tuple[str, ...]
    name: Annotated[str, Fact('for a sentence: "NVRTC 12.4"')]
    fact: Annotated[str, Fact("path of the fact that shows it")]
