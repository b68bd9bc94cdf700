"""Conclusions about containers and images: this container, and those seen from the host."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Annotated

from gpudoctor.model.containers import ContainerEngine, ContainerSetup
from gpudoctor.model.images import ProjectImage
from gpudoctor.model.machine import DeviceFile
from gpudoctor.model.record import Fact, record
from gpudoctor.model.symptom import Symptom
from gpudoctor.model.versions import CudaVersion


@record
class ContainerGpu:
    """The GPU in this container. A path or text is empty without evidence."""

    image: Annotated[str, Fact("the image that it was started from")] = ""
    present: Annotated[bool | None, Fact("the container has the GPU; None if that is unknown")] = None
    nodes: Annotated[tuple[DeviceFile, ...] | None, Fact("device nodes that CUDA opens; None if unknown")] = None
    no_driver: Annotated[str, Fact("path of what shows that a program finds no driver in it")] = ""
    no_libcuda: Annotated[str, Fact("path of what shows that it has the GPU and no libcuda")] = ""
    no_nvml: Annotated[str, Fact("path of what shows that NVML's library is not found")] = ""
    without: Annotated[
        str, Fact('how a report shows that it was started without the GPU: "The container has no NVIDIA driver: ..."')
    ] = ""
    without_facts: Annotated[tuple[str, ...], Fact("paths of what shows that")] = ()
    smi_alone: Annotated[
        tuple[str, ...], Fact("paths of what shows that nvidia-smi works in it and CUDA does not")
    ] = ()


@record
class OutdatedImage:
    """Why a container's image is probably older than its source; empty without evidence."""

    module: Annotated[str, Fact("one that the program in the container does not find and that is required")] = ""
    module_facts: Annotated[
        tuple[str, ...], Fact("paths of what shows that it is missing, and that it is required")
    ] = ()
    from_cache: Annotated[bool, Fact("the build took the layer that installs packages from its cache")] = False
    said: Annotated[Symptom | None, Fact("a message that the container runs something older than its source")] = None
    asked: Annotated[bool, Fact("a module is missing, or a message says that something is old")] = False


@record
class ImageVerdict:
    """Whether an image or its container is stale, and why."""

    image: ProjectImage
    fact: Annotated[str, Fact("path of the fact that identifies it")]
    verdict: Annotated[str, Fact('"fresh", "stale" or "unknown"')]
    causes: Annotated[tuple[str, ...], Fact("the first to act on first")] = ()
    newer_code: Annotated[str, Fact("a mounted file that was written after the process read its code")] = ""

    @property
    def is_hint(self) -> bool:
        """Whether there is a cause that a rebuild would not change."""
        return self.verdict == "fresh" and bool(self.causes)

    @property
    def subject(self) -> str:
        """The image or container as a finding's subject."""
        container = self.image.container
        return f"container {container.name}" if container is not None else f"image {self.image.image}"


@record
class GpuIntent:
    """Why a container is meant to use the GPU."""

    fact: Annotated[str, Fact("path of the fact that shows it")]
    words: Annotated[str, Fact('the reason, for a sentence: "its image is one for CUDA 13.0"')]
    certain: Annotated[bool, Fact("False if only the PyTorch in it is for CUDA")] = True


@record
class ImageCuda:
    """A CUDA version that an image is for, with its fact."""

    version: CudaVersion
    fact: Annotated[str, Fact("path of the fact that shows it")]
    words: Annotated[str, Fact('how it shows, for a sentence: "it is built FROM nvidia/cuda:13.0.1-base"')]


@record
class MissingGpu:
    """A GPU that a container requests and its host lacks."""

    name: Annotated[str, Fact("as the container names it: its number")]
    fact: Annotated[str, Fact("path of the fact that shows it")]


@record
class EngineLack:
    """What a container engine lacks to give a container the requested GPU."""

    kind: Annotated[str, Fact("of the failure message by which an engine says so")]
    text: Annotated[str, Fact("what is missing, in a sentence")]
    facts: Annotated[tuple[str, ...], Fact("paths of the facts that show it, the first first")]


@record
class SeenSetup:
    """How a container is started, seen from the host, with its conclusions."""

    path: Annotated[str, Fact('of its facts: "containers.setups[0]"')]
    setup: ContainerSetup
    engine: Annotated[ContainerEngine, Fact("nothing is known of it if it could not be asked")]
    gpu_access: Annotated[
        str | None,
        Fact(
            'how it gets the GPU: "cdi", "request" (--gpus, a reservation), "devices" (device nodes named one by one), '
            '"runtime" (the runtime nvidia); "" if it does not, None if that cannot be determined'
        ),
    ] = None
    gpu_intent: Annotated[GpuIntent | None, Fact("why it is meant to use the GPU; None if nothing shows that")] = None
    declines_gpu: Annotated[bool, Fact("it says itself that it wants no GPU")] = False
    host_has_gpu: Annotated[bool | None, Fact("the machine of the engine has an NVIDIA GPU")] = None
    missing_gpu: Annotated[MissingGpu | None, Fact("a GPU that it asks for and its host does not have")] = None
    image_cuda: Annotated[tuple[ImageCuda, ...], Fact("the CUDA versions that its image is for, each by its fact")] = ()
    failures: Annotated[tuple[Symptom, ...], Fact("of its last start and in its log since then, with their paths")] = ()
    engine_lack: Annotated[EngineLack | None, Fact("what the engine lacks for it")] = None

    @property
    def label(self) -> str:
        """Its kind and name, for a sentence: "service train"."""
        return f"{self.setup.kind} {self.setup.name[:100]}"

    @property
    def by_nvidia_runtime(self) -> bool:
        """Whether NVIDIA's runtime starts it, by its own setting or the engine's default."""
        return (self.setup.runtime or self.engine.default_runtime or "").startswith("nvidia")

    def fact(self, field: str) -> str:
        """Return the path of a field of its setup: "containers.setups[0].torch"."""
        return f"{self.path}.{field}"


def once_per_service(setups: Iterable[SeenSetup]) -> Iterator[SeenSetup]:
    """Yield the setups; of a service and its containers only the first, which is the service if present."""
    services: set[str] = set()
    for seen in setups:
        service = seen.setup.service
        if seen.setup.kind == "container" and service in services:
            continue
        if service:
            services.add(service)
        yield seen


def once_per_image(setups: Iterable[SeenSetup], rank: Callable[[SeenSetup], int]) -> Iterator[SeenSetup]:
    """Yield the setups, highest rank first; of those with the same image only the first."""
    images: set[str] = set()
    for seen in sorted(setups, key=rank, reverse=True):
        image = seen.setup.image
        if image is not None and image in images:
            continue
        if image is not None:
            images.add(image)
        yield seen
