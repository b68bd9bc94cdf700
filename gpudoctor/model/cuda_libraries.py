"""What is concluded of CUDA's libraries: which is missing, of another version, or of another origin."""

from __future__ import annotations

from typing import Annotated

from gpudoctor.model.fact import Fact
from gpudoctor.model.record import record
from gpudoctor.model.symptom import Symptom


@record
class MissingSymbol:
    """A function that a program does not find in the CUDA library that is loaded."""

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
    """CUDA's libraries, by what programs say and by what LD_LIBRARY_PATH leads to."""

    known: Annotated[bool, Fact("the folders of LD_LIBRARY_PATH, or what PyTorch or CuPy says, was read")] = False
    path_is_set: Annotated[bool, Fact("LD_LIBRARY_PATH is set")] = False
    symbol: MissingSymbol | None = None
    missing: Annotated[Symptom | None, Fact("the message that names a library which the loader does not find")] = None
    libcuda: Libcuda | None = None
    shadowing: Annotated[tuple[str, ...], Fact("files on LD_LIBRARY_PATH that NVIDIA's wheels bring too")] = ()
    shadowing_facts: tuple[str, ...] = ()
    other_wheels: Annotated[tuple[str, ...], Fact("NVIDIA's wheels for another CUDA major version than PyTorch's")] = ()
    cudnn_path: Annotated[str, Fact("the cuDNN that LD_LIBRARY_PATH leads to; empty for none")] = ""
    cudnn_fact: str = ""
