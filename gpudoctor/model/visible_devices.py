"""What is concluded of the variables that choose which GPUs a program sees."""

from __future__ import annotations

from typing import Annotated

from gpudoctor.model.fact import Fact
from gpudoctor.model.record import record


@record
class DeviceChoice:
    """What CUDA, or ROCm, makes of a variable that lists devices: the entries that count, and the one that ends it."""

    name: Annotated[str, Fact('the variable: "CUDA_VISIBLE_DEVICES"')]
    value: str
    visible: tuple[str, ...] = ()
    bad: Annotated[str, Fact("the entry that ends the list; empty if none does")] = ""
    reason: Annotated[str, Fact('why it does: "is beyond the last GPU, 3"')] = ""
    after: Annotated[tuple[str, ...], Fact("the entries after it, which do not count")] = ()
    hides_all: Annotated[bool, Fact("it leaves nothing visible, whatever GPUs there are")] = False
    count: Annotated[int | None, Fact("GPUs of the machine")] = None


@record
class VisibleDevices:
    """What the variables leave visible, and what programs find."""

    known: Annotated[bool, Fact("the environment is known")] = False
    nvidia: Annotated[DeviceChoice | None, Fact("CUDA_VISIBLE_DEVICES; None if it is unset or unknown")] = None
    amd: Annotated[DeviceChoice | None, Fact("the first variable that hides every AMD GPU")] = None
    misses: Annotated[
        bool, Fact("a driver is there, and CUDA finds no device, or PyTorch none and gives no reason")
    ] = False
    finds_none: Annotated[bool, Fact("a program finds a driver and no device, for whatever reason")] = False
    finds_some: Annotated[bool, Fact("CUDA finds devices in spite of the variable")] = False
    too_few: Annotated[bool, Fact("PyTorch sees fewer than are named, or a program asks for one too many")] = False
    seen_elsewhere: Annotated[str, Fact("GPU that PyTorch sees in one program and not in another")] = ""
    seen_elsewhere_facts: tuple[str, ...] = ()
