"""A GPU whose compute capability is known."""

from __future__ import annotations

from typing import Annotated

from gpudoctor.model.fact import Fact
from gpudoctor.model.record import record
from gpudoctor.model.versions import ComputeCapability


@record
class KnownGpu:
    """A GPU whose compute capability is known."""

    name: str
    capability: ComputeCapability
    fact: Annotated[str, Fact("path of the fact that shows its compute capability")]

    def __str__(self) -> str:
        return f"{self.name} ({self.capability.sm})"
