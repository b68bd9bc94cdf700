"""Conclusions about CUDA libraries and CuPy: their CUDA version, NumPy and compiler."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from gpudoctor.model.record import Fact, record
from gpudoctor.model.symptom import Symptom
from gpudoctor.model.versions import PackageVersion


@record
class MissingSymbol:
    """A function that the loaded CUDA library lacks."""

    symptom: Symptom
    library: Annotated[str, Fact('the library that should have it: "libnvJitLink.so.12", "libnccl"; empty if unknown')]
    stem: Annotated[str, Fact('its short name: "nccl"; empty if unknown')] = ""
    loaded: Annotated[str, Fact("the file that is loaded; empty if unknown")] = ""
    on_path: Annotated[str, Fact("the file that LD_LIBRARY_PATH leads to; empty if none or unknown")] = ""
    facts: tuple[str, ...] = ()


@record
class Libcuda:
    """A libcuda that is not the driver's own."""

    path: str
    fact: str
    kind: Annotated[str, Fact('"the stub of a toolkit" or "a forward compatibility package"')]
    fails_on: Annotated[str, Fact("the GPU that it does not work on; empty if it works, or may work")] = ""


@record
class CudaLibraries:
    """Problems with CUDA libraries, from program messages and LD_LIBRARY_PATH."""

    known: Annotated[bool, Fact("the folders of LD_LIBRARY_PATH, or what PyTorch or CuPy says, was read")] = False
    path_is_set: Annotated[bool, Fact("LD_LIBRARY_PATH is set")] = False
    symbol: MissingSymbol | None = None
    missing: Annotated[Symptom | None, Fact("the message that names a library which the loader does not find")] = None
    libcuda: Libcuda | None = None
    shadowing: Annotated[tuple[str, ...], Fact("files on LD_LIBRARY_PATH that NVIDIA's wheels bring too")] = ()
    shadowing_facts: tuple[str, ...] = ()
    other_wheels: Annotated[
        tuple[str, ...], Fact("NVIDIA's wheels for a different CUDA major version than PyTorch's")
    ] = ()
    cudnn_path: Annotated[str, Fact("the cuDNN that LD_LIBRARY_PATH leads to; empty for none")] = ""
    cudnn_fact: str = ""


@record
class CupyStatus:
    """CuPy, merged from its files and its import."""

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
    """A mismatch of CuPy and another part of the machine.

    kind: "symbol", "rocm-symbol", "driver", "library", "named-library", "doubted", "newer-libraries", "toolkit" or
    "all-else". names: values for its sentence, such as "library".
    certain: an error, or everything installed, shows it; otherwise the versions suggest it.
    cuda_major: CUDA major version of the CuPy that would fit, unless the driver decides that.
    """

    kind: str
    names: Mapping[str, str]
    facts: tuple[str, ...]
    certain: bool = True
    cuda_major: int | None = None


@record
class CupyMismatches:
    """Mismatches of CuPy and the installed CUDA."""

    by_message: Annotated[CupyMismatch | None, Fact("as a message shows it")] = None
    by_version: Annotated[CupyMismatch | None, Fact("as the versions of libraries and toolkits show it")] = None


@record
class CupyNumpy:
    """The installed NumPy and the versions that CuPy needs."""

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
    """A runtime compiler and the architectures that it compiles for."""

    architectures: tuple[str, ...]
    name: Annotated[str, Fact('for a sentence: "NVRTC 12.4"')]
    fact: Annotated[str, Fact("path of the fact that shows it")]
