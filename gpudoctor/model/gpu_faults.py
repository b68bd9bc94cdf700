"""Faults of GPU hardware."""

from __future__ import annotations

from typing import Annotated

from gpudoctor.model.fact import Fact
from gpudoctor.model.machine import Xid
from gpudoctor.model.record import record
from gpudoctor.model.symptom import Symptom


@record
class FaultSign:
    """One sign of a hardware fault."""

    text: Annotated[str, Fact('for a sentence: "Xid 79 (GPU has fallen off the bus)"')]
    fact: Annotated[str, Fact("path of the fact that shows it")]
    severe: Annotated[bool, Fact("the GPU cannot be used before a reset; otherwise the driver survives the fault")] = (
        False
    )
    lost: Annotated[bool, Fact("the driver does not reach the GPU any more: no reset helps, only a restart")] = False
    worn_out: Annotated[bool, Fact("its spare memory is used up")] = False
    xid: Xid | None = None


@record
class GpuFault:
    """The signs of a fault on one GPU."""

    subject: Annotated[str, Fact("its name, else its PCI address")]
    signs: tuple[FaultSign, ...]
    nvml_index: int | None = None

    @property
    def severe(self) -> bool:
        """Whether one of the signs is severe."""
        return any(sign.severe for sign in self.signs)

    @property
    def lost(self) -> bool:
        """Whether the driver does not reach the GPU any more."""
        return any(sign.lost for sign in self.signs)

    @property
    def worn_out(self) -> bool:
        """Whether its spare memory is used up."""
        return any(sign.worn_out for sign in self.signs)


@record
class GpuFaults:
    """What shows that the hardware of a GPU is at fault."""

    faulty: tuple[GpuFault, ...] = ()
    not_started: Annotated[Symptom | None, Fact("the driver is loaded and lists no device at all")] = None
    of_programs: Annotated[tuple[FaultSign, ...], Fact("Xid errors for which NVIDIA asks no reset")] = ()
    known: Annotated[bool, Fact("the Xid errors, or the memory errors of a device, are known")] = False
