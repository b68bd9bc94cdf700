"""What is concluded of the container that the facts are of: whether it has the GPU and the driver's libraries."""

from __future__ import annotations

from typing import Annotated

from gpudoctor.model.fact import Fact
from gpudoctor.model.machine import DeviceFile
from gpudoctor.model.record import record


@record
class ContainerGpu:
    """The GPU of the container that the facts are of. A path or text is empty if nothing shows it."""

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
