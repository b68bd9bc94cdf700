"""The env profile: tuning results in a form that programs read, and whether it fits a machine."""

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
    """Recommended settings and the machine they were found on. `None` means not measured."""

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
    """The env profile in the working directory, reduced to what a diagnosis needs."""

    path: str = FILE_NAME
    problem: Annotated[str, Fact("why it cannot be used; empty when it can")] = ""
    device: str | None = None
    workload: str | None = None
    mode: str | None = None
    fingerprint: Annotated[str | None, Fact("the machine that it was found on", source=FILE_NAME)] = None


MEMORY_TOLERANCE = 0.05
"""PyTorch leaves out the driver's reserve: for an RTX 4090 it shows 23.6 GiB, NVML 24.0 GiB."""

MIG = "_MIG_"  # "NVIDIA_A100-SXM4-40GB_MIG_1g.5gb": NVML reports name and memory of the whole device


@record
class FingerprintPart:
    """One part of a fingerprint.

    name: "device", "memory", "driver", "torch" or "cupy".
    was: the profile's value.
    now: this machine's value; None if unknown.
    facts: dotted paths of the evidence.
    """

    name: str
    was: str
    now: str | None
    facts: tuple[str, ...] = ()

    @property
    def fits(self) -> bool | None:
        """Whether this machine's value is unchanged; None if unknown."""
        return None if self.now is None else _AGREE.get(self.name, str.__eq__)(self.was, self.now)


def fingerprint_value(text: str) -> str:
    """Return `text` with "_" for each character that is not allowed in a fingerprint: "NVIDIA_H200"."""
    return re.sub(r"[^A-Za-z0-9_./+-]", "_", text)


def fingerprint_memory(size_bytes: int) -> str:
    """Return a size in a fingerprint's format: "140.4GiB"."""
    return f"{size_bytes / 2**30:.1f}GiB"


def same_device(was: str, now: str) -> bool:
    """Return whether the names mean one device; for a MIG instance NVML names the whole device."""
    return was.partition(MIG)[0] == now.partition(MIG)[0]


def same_memory(was: str, now: str) -> bool:
    """Return whether the sizes are equal except for the driver's reserve."""
    before, after = _amount(was), _amount(now)
    return (
        was == now if before is None or after is None else abs(before - after) <= MEMORY_TOLERANCE * max(before, after)
    )


def _amount(text: str) -> float | None:
    match = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,3})?)GiB", text)
    return float(match[1]) if match else None


def _same_version(was: str, now: str) -> bool:
    """Return whether the versions agree. A report may have a shorter form: "2.13.0" for "2.13.0+cu130"."""
    before, after = PackageVersion(was), PackageVersion(now)
    return before.agrees_with(after) and before.public == after.public


_AGREE: Mapping[str, Callable[[str, str], bool]] = {
    "device": same_device,
    "memory": same_memory,
    "torch": _same_version,
}
