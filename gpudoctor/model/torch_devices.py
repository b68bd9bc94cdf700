"""The GPUs that PyTorch lists, and those on which it computes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Annotated

from gpudoctor.model.fact import Fact
from gpudoctor.model.record import record
from gpudoctor.model.versions import ComputeCapability


@record
class TorchDevice:
    """A CUDA device of PyTorch.

    errors: precision → relative error of the product, None if it is unknown. error_facts: precision → path of it.
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
        """Return whether the product in `precision` was right."""
        return precision in self.right

    @property
    def capability_fact(self) -> str:
        """The path of the fact that gives its compute capability."""
        return f"torch_runtime.device_capabilities[{self.cuda_index}]"


@record
class TorchDevices:
    """The NVIDIA GPUs of PyTorch. Checks that need one of them call `usable_devices` of gpudoctor.registry."""

    listed: Annotated[tuple[TorchDevice, ...], Fact("all that it lists, whether it computes on them or not")] = ()
    usable: Annotated[tuple[TorchDevice, ...], Fact("those whose float32 product is right, TF32 included")] = ()
    unknown: Annotated[str, Fact("the fact without which it cannot be determined which are usable")] = ""
    reason: Annotated[str, Fact("why none is usable; empty if one is, or if it is unknown")] = ""


def described(devices: Iterable[object]) -> str:
    """Return the devices for a sentence, equal ones once: "2 x NVIDIA L4 (compute capability 8.9)"."""
    texts = [str(device) for device in devices]
    counts = {text: texts.count(text) for text in texts}
    return " and ".join(f"{count} x {text}" if count > 1 else text for text, count in counts.items())
