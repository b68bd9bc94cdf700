"""Concluded sections: gpudoctor/conclusions/<name>.py makes each from facts and symptoms."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import field
from typing import Annotated

from gpudoctor.model.container_conclusions import ContainerGpu, ImageVerdict, OutdatedImage, SeenSetup
from gpudoctor.model.cuda_conclusions import Compiler, CudaLibraries, CupyMismatches, CupyNumpy, CupyStatus
from gpudoctor.model.finding import Severity
from gpudoctor.model.gpu_conclusions import (
    Consumers,
    DriverState,
    GpuFaults,
    GpuNeed,
    KnownGpu,
    Proof,
    Shortage,
    VisibleDevices,
    Wsl,
)
from gpudoctor.model.profile import FingerprintPart
from gpudoctor.model.record import Fact, record
from gpudoctor.model.requirement import Judgement
from gpudoctor.model.software import Requirement, lacks_module
from gpudoctor.model.symptom import Symptom
from gpudoctor.model.torch_conclusions import (
    Allocator,
    Extensions,
    HalfPrecision,
    Tf32,
    TorchDevices,
    TorchKernels,
    TorchRequest,
)
from gpudoctor.model.versions import CudaVersion, PackageVersion


@record
class Origin:
    """Where the facts come from."""

    is_report: Annotated[bool, Fact("pasted texts of another machine: what they do not show is unknown, not absent")]


@record
class Attempts:
    """Commands that the user already ran without success, or cannot run."""

    commands: Annotated[tuple[str, ...], Fact("regular expressions of the commands")] = ()


@record
class Place:
    """The place where programs run. A field is False without evidence."""

    in_container: bool = False
    about_container: Annotated[bool, Fact("the facts are of a container: by signs in it, or by how it was started")] = (
        False
    )
    asks_for_gpu: Annotated[bool, Fact("the facts are of a container that was started with an option for the GPU")] = (
        False
    )
    in_wsl: bool = False
    is_mac: bool = False
    is_windows: bool = False
    is_tegra: Annotated[bool, Fact("a board of the Jetson family: its GPU is not on the PCI bus")] = False


@record
class Gpu:
    """The NVIDIA GPU that programs here are meant to use."""

    name: Annotated[str | None, Fact('"" if there is none, None if that is unknown')] = None
    fact: Annotated[str, Fact("path of the fact that shows it")] = ""
    present: Annotated[str | None, Fact("the same, GPUs of other containers and virtual machines included")] = None
    known: Annotated[tuple[KnownGpu, ...], Fact("those of NVML whose compute capability is known")] = ()


@record
class Pytorch:
    """PyTorch, merged from its files and its import.

    facts: field → path of its fact. likely: field → the reason for a value that was inferred, not read.
    """

    installed: bool | None = None
    version: PackageVersion | None = None
    build: Annotated[str | None, Fact('"cuda", "cpu", "rocm", "mps", "xpu"')] = None
    cuda_version: CudaVersion | None = None
    hip_version: str | None = None
    architectures: tuple[str, ...] | None = None
    conda_build: str | None = None
    conda_cpuonly: bool | None = None
    cxx11_abi: bool | None = None
    available: Annotated[bool | None, Fact("torch.cuda.is_available()")] = None
    availability_error: Annotated[str | None, Fact("why CUDA cannot be initialised; empty for no error")] = None
    import_error: Annotated[str | None, Fact("why the import fails; empty if it works")] = None
    facts: Mapping[str, str] = field(default_factory=dict)
    likely: Mapping[str, str] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """PyTorch with its version, for a sentence: "PyTorch 2.13.0+cpu"."""
        return f"PyTorch {self.version}" if self.version else "PyTorch"

    @property
    def says_cpu(self) -> bool:
        """Whether the version is that of a CPU build, whatever a message of another build says."""
        return self.version is not None and self.version.local == "cpu"

    @property
    def described(self) -> str:
        """The version with CUDA and C++ ABI, for a sentence: "2.6.0+cu124 (CUDA 12.4), C++11 ABI off"."""
        cuda = f" (CUDA {self.cuda_version})" if self.cuda_version else ""
        abi = "" if self.cxx11_abi is None else f", C++11 ABI {'on' if self.cxx11_abi else 'off'}"
        return f"{self.version}{cuda}{abi}"

    @property
    def subject(self) -> str:
        """The distribution with its version: "torch 2.13.0+cpu"."""
        return f"torch {self.version}" if self.version else "torch"

    @property
    def variant(self) -> str:
        """The name of its build in local versions: "cu130", "cpu"; "" if it is unknown."""
        if self.build == "cuda":
            return self.cuda_version.tag if self.cuda_version else ""
        return "cpu" if self.build == "cpu" else ""

    @property
    def lacks_module(self) -> bool:
        """Whether the import failed because there is no module torch."""
        return lacks_module(self.import_error, "torch")

    def paths(self, *fields: str) -> tuple[str, ...]:
        """Return the paths of the known facts behind these fields."""
        return tuple(dict.fromkeys(self.facts[name] for name in fields if name in self.facts))

    @property
    def build_read(self) -> str | None:
        """The build if it was read, None if it was inferred or is unknown."""
        return None if "build" in self.likely else self.build


@record
class TwoEnvironments:
    """Evidence that a package is in one Python environment and the program runs in another; empty without evidence.

    launcher: a program such as torchrun was started by the Python of the other environment.
    """

    summary: str = ""
    facts: tuple[str, ...] = ()
    module: str = "torch"
    launcher: bool = False
    certain: bool = True


@record
class TorchNeed:
    """What needs PyTorch."""

    severity: Annotated[Severity, Fact("how much it matters if PyTorch is absent, by the project and the GPU")]
    requirement: Annotated[Requirement | None, Fact("the project's, in no optional extra or group")] = None
    of_torch: Annotated[Requirement | None, Fact("the project's on torch itself")] = None
    imported: Annotated[str, Fact("path of the message of a program that imports it and finds none")] = ""


@record
class AmdGpu:
    """The AMD GPU, from ROCm, the PCI bus or a report.

    targets: gfx targets, None if unknown. fact: path of the evidence.
    product: its name in a report, "" for none; product_fact: path of that message; product_target: its gfx target.
    """

    targets: tuple[str, ...] | None = None
    fact: str = ""
    product: str = ""
    product_fact: str = ""
    product_target: str = ""
    said: Annotated[str, Fact("path of the words that the GPU is one of AMD, if no product is named")] = ""


@record
class CudaIntent:
    """Evidence that CUDA or ROCm is wanted; empty without evidence.

    fact, reason: path of the evidence, and its description for a sentence: "a program asks for CUDA".
    """

    fact: str = ""
    reason: str = ""
    program: Annotated[str, Fact("path of the message of a program that asks for CUDA and does not get it")] = ""
    index: Annotated[str, Fact('variant of PyTorch whose index was named: "cu121"')] = ""
    rocm_index: Annotated[str, Fact('the same for ROCm: "rocm6.1"')] = ""
    rocm_fact: str = ""
    conda: Annotated[str, Fact("path of what shows that conda was asked for CUDA, or sees the driver")] = ""
    conda_reason: str = ""


@record
class CpuUse:
    """A program that computes on the CPU although a GPU is available or wanted; empty without evidence.

    fact, text: path of the message, and its words. by_person: a person says it, not a program.
    program: "torch", "jax", "ollama", "llama-cpp", "" if unknown.
    cause: id of the check for the reason, if the report shows it, with its description. certain: it is not a guess.
    """

    fact: str = ""
    text: str = ""
    by_person: bool = False
    program: str = ""
    cause: str = ""
    reason: str = ""
    certain: bool = True
    without_cuda: Annotated[bool, Fact("the GPU is one that CUDA does not run on: of AMD, or in a Mac")] = False


@record
class Nvrtc:
    """NVRTC, the compiler that libraries call at run time."""

    refused: Annotated[
        Symptom | None, Fact("the message that it does not know the GPU's architecture, unless the report is of CuPy")
    ] = None
    named_gpus: Annotated[tuple[KnownGpu, ...], Fact("the GPU that the report names with that message")] = ()
    of_cupy: Annotated[Compiler | None, Fact("what the NVRTC that CuPy loads compiles for")] = None
    on_disk: Annotated[bool | None, Fact("a wheel, a toolkit or the loader has its library for CuPy")] = None
    unknown: Annotated[str, Fact("the fact without which `on_disk` cannot be determined")] = "toolkit.toolkits"


@record
class Resemblance:
    """The confirmed reports whose words a pasted report resembles most.

    shares: how probable each cause is by the words alone, 0 to 1, the most probable first; "" is a machine on which
    nothing is wrong. Empty without a report.
    """

    shares: Mapping[str, float] = field(default_factory=dict)
    words: Annotated[tuple[str, ...], Fact("the words that speak most for the most probable cause")] = ()
    known: Annotated[int, Fact("how many of its words tell causes apart")] = 0
    by_person: Annotated[bool, Fact("a person says something: it is not only a program's log")] = False


@record
class Concern:
    """What the author of a pasted report is concerned with: a fault that they have now, or something else.

    no_fault: whether they probably have none: they ask before they buy, wish for a feature, give advice, or describe a
    fault that is past, somebody else's or only pretended. share: how probable that is, 0 to 1; 0 without a report.
    """

    no_fault: bool = False
    share: float = 0.0


@record
class Conclusions:
    """All concluded sections. Checks, other conclusions and fixes take them as parameters by name."""

    origin: Origin
    attempts: Attempts
    place: Place
    gpu: Gpu
    known_gpus: tuple[KnownGpu, ...]
    pytorch: Pytorch
    torch_devices: TorchDevices
    torch_kernels: TorchKernels
    driver_state: DriverState
    consumers: Consumers
    gpu_need: GpuNeed
    wsl: Wsl
    gpu_faults: GpuFaults
    tf32: Tf32
    half_precision: HalfPrecision
    visible_devices: VisibleDevices
    allocator: Allocator
    shortage: Shortage
    judgements: tuple[Judgement, ...]
    fingerprint: tuple[FingerprintPart, ...]
    cuda_intent: CudaIntent
    cpu_use: CpuUse
    torch_request: TorchRequest
    torch_need: TorchNeed
    two_environments: TwoEnvironments
    amd_gpu: AmdGpu
    cupy_status: CupyStatus
    cupy_mismatch: CupyMismatches
    cupy_numpy: CupyNumpy
    nvrtc: Nvrtc
    setups: tuple[SeenSetup, ...]
    cuda_libraries: CudaLibraries
    container_gpu: ContainerGpu
    extensions: Extensions
    image_verdicts: tuple[ImageVerdict, ...]
    outdated_image: OutdatedImage
    resemblance: Resemblance
    concern: Concern
    proof: Proof


CONCLUSIONS = tuple(item.name for item in dataclasses.fields(Conclusions))
