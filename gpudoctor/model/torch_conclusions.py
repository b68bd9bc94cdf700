"""Conclusions about PyTorch: devices, kernels, precision, extensions, allocator, and pip's request."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Annotated

from gpudoctor.model.gpu_conclusions import KnownGpu
from gpudoctor.model.record import Fact, record
from gpudoctor.model.software import Package, Requirement
from gpudoctor.model.symptom import Symptom
from gpudoctor.model.versions import ComputeCapability, PackageVersion


@record
class TorchDevice:
    """A CUDA device of PyTorch.

    errors: precision → relative error of the product, None if unknown. error_facts: precision → its path.
    """

    cuda_index: int
    name: str
    capability: ComputeCapability
    right: Annotated[frozenset[str], Fact("precisions whose product is as exact as they allow")] = frozenset()
    errors: Mapping[str, float | None] = field(default_factory=dict)
    error_facts: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.name} (compute capability {self.capability})"

    def computes(self, precision: str) -> bool:
        """Return whether the product in `precision` was correct."""
        return precision in self.right

    @property
    def capability_fact(self) -> str:
        """The path of its compute capability."""
        return f"torch_runtime.device_capabilities[{self.cuda_index}]"


@record
class TorchDevices:
    """The NVIDIA GPUs of PyTorch. Checks that need one of them call `usable_devices` of gpudoctor.registry."""

    listed: Annotated[tuple[TorchDevice, ...], Fact("all that it lists, whether it computes on them or not")] = ()
    usable: Annotated[tuple[TorchDevice, ...], Fact("those whose float32 product is right, TF32 included")] = ()
    unknown: Annotated[str, Fact("the fact without which it cannot be determined which are usable")] = ""
    reason: Annotated[str, Fact("why none is usable; empty if one is, or if it is unknown")] = ""


def described(devices: Iterable[object]) -> str:
    """Return the devices for a sentence, without duplicates: "2 x NVIDIA L4 (compute capability 8.9)"."""
    texts = [str(device) for device in devices]
    counts = {text: texts.count(text) for text in texts}
    return " and ".join(f"{count} x {text}" if count > 1 else text for text, count in counts.items())


@record
class TorchKernels:
    """The relevant GPUs, the machine code in PyTorch's build, and the messages that it lacks code for the GPU.

    runs: for each of `gpus` whether the code runs on it; None if the possible builds differ.
    """

    gpus: tuple[KnownGpu, ...] = ()
    runs: tuple[bool | None, ...] = ()
    code: Annotated[str, Fact('what the build has code for, in words: "sm_80 sm_90"; empty if unknown')] = ""
    fact: Annotated[str, Fact("path of the fact that shows it")] = ""
    source: Annotated[str, Fact("source of the table, if the release shows it")] = ""
    complaint: Annotated[Symptom | None, Fact("PyTorch, CUDA or ptxas says that there is no code for the GPU")] = None
    failed: Annotated[Symptom | None, Fact("a kernel of a report, not only of PyTorch, has no code for the GPU")] = None
    ptxas: Annotated[Symptom | None, Fact("Triton's ptxas does not know the GPU")] = None
    refused: Annotated[Symptom | None, Fact("an NVRTC that is not CuPy's does not compile for the GPU")] = None

    @property
    def missing(self) -> tuple[KnownGpu, ...]:
        """The GPUs that cannot run the code, one for each compute capability."""
        without = [gpu for gpu, runs in zip(self.gpus, self.runs, strict=True) if runs is False]
        return tuple({gpu.capability: gpu for gpu in reversed(without)}.values())


@record
class TorchRequest:
    """The requested version and the installer's answer; `fact` is empty if no installer failed."""

    fact: Annotated[str, Fact("path of the installer's message")] = ""
    tool: Annotated[str, Fact('"pip", "uv", "conda" or "poetry"')] = ""
    package: str = "torch"
    specifier: str = ""
    version: Annotated[PackageVersion | None, Fact("of torch, if it is pinned and known")] = None
    available: Annotated[tuple[str, ...] | None, Fact("versions that were there; None if the message names none")] = (
        None
    )
    index: Annotated[str | None, Fact('PyTorch\'s index that was named: "cu121", "nightly/cu128", ""')] = None
    tag: Annotated[str, Fact('platform without a wheel, if the tool names it: "macosx_13_0_x86_64"')] = ""
    platform: Annotated[str | None, Fact("the tables' name of the platform; empty for one without wheels")] = None
    is_about_python: Annotated[bool, Fact("the Python or the platform has no wheel; else the index lacks it")] = False

    @property
    def asked(self) -> str:
        """The request, for a sentence: "torch==2.4.1"."""
        return f"{self.package}{self.specifier}"

    @property
    def variant(self) -> str:
        """The requested build, from version or index: "cu121", "rocm6.1", "cpu"; "" without one."""
        local = self.version.local if self.version is not None else ""
        last = (self.index or "").rpartition("/")[2]
        return local or (last if re.fullmatch(r"(?:cu|rocm)\d[\d.]*|cpu|xpu", last) else "")

    @property
    def wheel_platform(self) -> str | None:
        """The platform of the wheels: CUDA and ROCm wheels are mostly for Linux."""
        return "linux_x86_64" if self.platform is None and self.variant.startswith(("cu", "rocm")) else self.platform


@record
class Tf32Product:
    """A float32 product that has the error of TF32."""

    device: str
    relative_error: float
    fact: Annotated[str, Fact("path of its error")]


@record
class Tf32:
    """Whether float32 products run in TF32."""

    possible: Annotated[bool, Fact("a GPU has TF32, or may have it")] = True
    forbidden: Annotated[bool, Fact("NVIDIA_TF32_OVERRIDE=0 forbids it, whatever a program sets")] = False
    variables: Annotated[tuple[str, ...], Fact("environment variables that allow it")] = ()
    products: tuple[Tf32Product, ...] = ()
    default_of: Annotated[PackageVersion | None, Fact("the PyTorch release that allows it by default")] = None
    default_fact: Annotated[str, Fact("path of that version")] = ""
    differing: Annotated[Symptom | None, Fact("results are said to differ")] = None
    gpu: Annotated[Symptom | None, Fact("the GPU with TF32 that the report names")] = None
    said: Annotated[
        tuple[Symptom, ...], Fact("what shows that TF32 is why results differ: it is named, or a GPU without it")
    ] = ()


@record
class HalfPrecision:
    """Evidence that fp16 gives NaN or infinity."""

    faulty: Annotated[Mapping[str, str], Fact("GPUs whose fp16 convolutions give NaN: path of the name → name")] = (
        field(default_factory=dict)
    )
    named: Annotated[Symptom | None, Fact("such a GPU that the report names")] = None
    nan: Annotated[Symptom | None, Fact("results are NaN or infinite, and something shows that fp16 is why")] = None
    certain: Annotated[bool, Fact("that message names fp16 itself")] = False
    in_use: Annotated[Symptom | None, Fact("half precision is used")] = None


@record
class BuiltExtension:
    """The build that an extension is for, from the local part of its version; None if it has none."""

    package: Package
    fact: str
    torch: Annotated[str | None, Fact('release of PyTorch: "2.3"')] = None
    cuda_major: int | None = None
    cxx11_abi: bool | None = None


@record
class FailedExtension:
    """An extension that a message says could not be loaded."""

    symptom: Symptom
    name: Annotated[str, Fact('its distribution: "flash-attn"; empty if unknown')] = ""
    version: PackageVersion | None = None
    facts: tuple[str, ...] = ()
    abi: Annotated[str, Fact('C++ ABI that it asks for: "the C++11 ABI"; empty if unknown')] = ""


@record
class Extensions:
    """Compiled extensions of PyTorch."""

    built: Annotated[tuple[BuiltExtension, ...] | None, Fact("installed ones that name the PyTorch they need")] = None
    failed: tuple[FailedExtension, ...] = ()
    to_build: Annotated[Requirement | None, Fact("a requirement that nvcc still has to compile")] = None


@record
class AllocatorVariable:
    """One of the allocator's environment variables."""

    name: str
    value: str
    problems: Annotated[tuple[str, ...], Fact("what PyTorch refuses or does not read, each for a sentence")] = ()
    corrected: Annotated[str, Fact("the value without slips that leave no doubt; empty if that is not enough")] = ""
    ignored: Annotated[tuple[str, ...], Fact("settings that its backend ignores")] = ()


@record
class Allocator:
    """The variables that are set, in PyTorch's order: it reads only the first."""

    variables: Annotated[tuple[AllocatorVariable, ...] | None, Fact("None if the environment is unknown")] = None
    supported: Annotated[bool, Fact("this PyTorch is for a GPU, or its build is unknown")] = True
    too_old: Annotated[PackageVersion | None, Fact("this PyTorch, if it ignores PYTORCH_ALLOC_CONF as it is set")] = (
        None
    )
