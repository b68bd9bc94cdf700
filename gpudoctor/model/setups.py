"""What is concluded of containers, services and images that are seen from outside: one record for each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Annotated

from gpudoctor.model.containers import ContainerEngine, ContainerSetup
from gpudoctor.model.fact import Fact
from gpudoctor.model.record import record
from gpudoctor.model.symptom import Symptom
from gpudoctor.model.versions import CudaVersion


@record
class GpuIntent:
    """Why a container is meant to use the GPU."""

    fact: Annotated[str, Fact("path of the fact that shows it")]
    words: Annotated[str, Fact('the reason, for a sentence: "its image is one for CUDA 13.0"')]
    certain: Annotated[bool, Fact("False if only the PyTorch in it is for CUDA")] = True


@record
class ImageCuda:
    """A CUDA version that an image is for, by one of its facts."""

    version: CudaVersion
    fact: Annotated[str, Fact("path of the fact that shows it")]
    words: Annotated[str, Fact('how it shows, for a sentence: "it is built FROM nvidia/cuda:13.0.1-base"')]


@record
class MissingGpu:
    """A GPU that a container asks for and its host does not have."""

    name: Annotated[str, Fact("as the container names it: its number")]
    fact: Annotated[str, Fact("path of the fact that shows it")]


@record
class EngineLack:
    """What an engine lacks to give a container the GPU that it asks for."""

    kind: Annotated[str, Fact("of the failure message by which an engine says so")]
    text: Annotated[str, Fact("what is missing, in a sentence")]
    facts: Annotated[tuple[str, ...], Fact("paths of the facts that show it, the first first")]


@record
class SeenSetup:
    """How a container is started, as seen from outside, with what follows from it."""

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
        """Whether NVIDIA's runtime starts it, by its own choice or by the engine's default."""
        return (self.setup.runtime or self.engine.default_runtime or "").startswith("nvidia")

    def fact(self, field: str) -> str:
        """Return the path of a field of its setup: "containers.setups[0].torch"."""
        return f"{self.path}.{field}"


def once_per_service(setups: Iterable[SeenSetup]) -> Iterator[SeenSetup]:
    """Yield the setups; of a service and its containers the first, which is the service if it is among them."""
    services: set[str] = set()
    for seen in setups:
        service = seen.setup.service
        if seen.setup.kind == "container" and service in services:
            continue
        if service:
            services.add(service)
        yield seen


def once_per_image(setups: Iterable[SeenSetup], rank: Callable[[SeenSetup], int]) -> Iterator[SeenSetup]:
    """Yield the setups, those of a high rank first; of those with the same image the first."""
    images: set[str] = set()
    for seen in sorted(setups, key=rank, reverse=True):
        image = seen.setup.image
        if image is not None and image in images:
            continue
        if image is not None:
            images.add(image)
        yield seen
