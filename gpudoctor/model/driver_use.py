"""What is concluded of the NVIDIA driver, and of the installed libraries that need it."""

from __future__ import annotations

from typing import Annotated

from gpudoctor.model.fact import Fact
from gpudoctor.model.record import record
from gpudoctor.model.symptom import Symptom
from gpudoctor.model.versions import CudaVersion


@record
class DriverState:
    """Whether the NVIDIA driver works, and which symptoms say that it does not."""

    installed: bool | None = None
    label: Annotated[str, Fact('for a sentence: "driver 580.65.06"')] = "NVIDIA driver"
    works: Annotated[bool, Fact("CUDA was initialised, or NVML lists a device")] = False
    asked: Annotated[bool, Fact("CUDA was called: an error that it returns is known")] = False
    not_found: Annotated[Symptom | None, Fact("a program finds no driver at all: libcuda cannot be loaded")] = None
    too_old: Annotated[Symptom | None, Fact("a program calls the driver too old")] = None
    cuda_version: Annotated[
        CudaVersion | None, Fact("highest CUDA version that it offers: by libcuda, by a message, by its branch")
    ] = None
    stays: Annotated[bool, Fact("this user cannot update it, or not to a branch that supports the GPU")] = False


@record
class Consumer:
    """An installed library or compiler whose programs need a driver for a CUDA version."""

    name: Annotated[str, Fact('"torch", "cupy", "nvcc"')]
    says: Annotated[str, Fact('for a sentence: "PyTorch was built with CUDA 13.0"')]
    cuda_version: CudaVersion
    fact: Annotated[str, Fact("path of the fact that gives the version")]
    works: Annotated[bool, Fact("it is known to compute on the GPU")] = False
    runs: Annotated[bool | None, Fact("the driver runs programs built with that version")] = None
    has_variants: Annotated[bool, Fact("its package comes for several CUDA versions: another one may fit")] = False
    likely: Annotated[str, Fact("why the version was inferred, not read; empty if it was read")] = ""


@record
class Consumers:
    """What is installed that needs the NVIDIA driver."""

    ask_for_cuda: Annotated[bool | None, Fact("a CUDA build of PyTorch or CuPy is installed")] = None
    libraries: tuple[Consumer, ...] = ()
    nvcc: Annotated[Consumer | None, Fact("the toolkit's compiler: what it makes needs a driver, not itself")] = None
