"""The env profile: what tuning found, in the form in which programs take it up, and whether it fits a machine."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Annotated

from gpudoctor.model.record import Fact, record
from gpudoctor.model.versions import PackageVersion

SCHEMA = "gpudoctor/profile/1"
FILE_NAME = "gpudoctor.env"
ALLOCATOR_VARIABLES = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")


@record
class Profile:
    """What to run with, and on what it was found. `None` means not measured."""

    device: Annotated[str, Fact('"cuda:0", "cpu", "mps"')]
    precision: Annotated[str, Fact('"fp32", "tf32", "bf16", "fp16", "complex64", "complex128"')]
    batch_size: int
    max_batch_size: Annotated[int | None, Fact("largest batch that is safe in memory")]
    workload: Annotated[str, Fact("what was tuned, as it is named on the command line")]
    fingerprint: Annotated[str, Fact("device, memory, driver, torch and cupy: what makes the profile stale")]
    mode: Annotated[str, Fact('"training" or "inference"; empty if it is the user\'s own')] = ""
    created_at: Annotated[str, Fact("UTC time in ISO 8601")] = ""
    throughput: Annotated[float | None, Fact("samples per second that were measured")] = None
    unit: Annotated[str, Fact('unit of the throughput: "samples/s"')] = ""
    physical_device: Annotated[
        str, Fact("what CUDA_VISIBLE_DEVICES called the device: a number or a UUID; empty if it was not set")
    ] = ""
    accumulation_steps: Annotated[int | None, Fact("batches between two steps of the optimiser")] = None
    search: Annotated[str, Fact('"cut-short" if the budget ended the search, empty if it was complete')] = ""
    channels_last: bool = False
    cudnn_benchmark: bool = False
    compile: Annotated[bool, Fact("the model goes through torch.compile")] = False
    pinned_memory: Annotated[bool | None, Fact("batches are copied to the device from pinned memory")] = None
    non_blocking: Annotated[bool | None, Fact("those copies do not wait for their end")] = None
    workers: Annotated[int | None, Fact("workers of the DataLoader")] = None
    frameworks: Annotated[Mapping[str, str], Fact("variables that the frameworks read themselves")] = field(
        default_factory=dict
    )
    own: Annotated[Mapping[str, str], Fact("variables that the user asked for")] = field(default_factory=dict)
    warnings: Annotated[tuple[str, ...], Fact("what may have spoilt the measurement; comments in the file")] = ()


@record
class FoundProfile:
    """The env profile in the working directory, as far as a diagnosis needs it."""

    path: str = FILE_NAME
    problem: Annotated[str, Fact("why it cannot be used; empty when it can")] = ""
    device: str | None = None
    workload: str | None = None
    mode: str | None = None
    fingerprint: Annotated[str | None, Fact("the machine that it was found on", source=FILE_NAME)] = None


MEMORY_TOLERANCE = 0.05
"""PyTorch leaves out what the driver reserves: of an RTX 4090 it shows 23.6 GiB, NVML 24.0 GiB."""

MIG = "_MIG_"  # "NVIDIA_A100-SXM4-40GB_MIG_1g.5gb": NVML gives the name and memory of the whole device


@record
class FingerprintPart:
    """One part of a fingerprint.

    name: "device", "memory", "driver", "torch" or "cupy".
    was: as the profile has it.
    now: as this machine is; None if that is unknown.
    facts: dotted paths of the facts that show it.
    """

    name: str
    was: str
    now: str | None
    facts: tuple[str, ...] = ()

    @property
    def fits(self) -> bool | None:
        """Whether the machine is still what it was; None if that is unknown."""
        return None if self.now is None else _AGREE.get(self.name, str.__eq__)(self.was, self.now)


def fingerprint_value(text: str) -> str:
    """Return `text` with "_" for each character that a part of a fingerprint cannot hold: "NVIDIA_H200"."""
    return re.sub(r"[^A-Za-z0-9_./+-]", "_", text)


def fingerprint_memory(size_bytes: int) -> str:
    """Return a size as a fingerprint has it: "140.4GiB"."""
    return f"{size_bytes / 2**30:.1f}GiB"


def same_device(was: str, now: str) -> bool:
    """Return whether the names are of one device; of a MIG instance NVML names the whole."""
    return was.partition(MIG)[0] == now.partition(MIG)[0]


def same_memory(was: str, now: str) -> bool:
    """Return whether the sizes are equal but for what a driver reserves."""
    before, after = _amount(was), _amount(now)
    return (
        was == now if before is None or after is None else abs(before - after) <= MEMORY_TOLERANCE * max(before, after)
    )


def _amount(text: str) -> float | None:
    match = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,3})?)GiB", text)
    return float(match[1]) if match else None


def _same_version(was: str, now: str) -> bool:
    """Return whether the versions agree. A report may show less than the profile: "2.13.0" of "2.13.0+cu130"."""
    before, after = PackageVersion(was), PackageVersion(now)
    return before.agrees_with(after) and before.public == after.public


_AGREE: Mapping[str, Callable[[str, str], bool]] = {
    "device": same_device,
    "memory": same_memory,
    "torch": _same_version,
}
