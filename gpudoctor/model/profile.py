"""The env profile: what tuning found, in the form in which programs take it up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Annotated

from gpudoctor.model.fact import Fact
from gpudoctor.model.record import record

SCHEMA = "gpudoctor/profile/1"
FILE_NAME = "gpudoctor.env"


@record
class Profile:
    """What to run with, and on what it was found. `None` means not measured."""

    device: Annotated[str, Fact('"cuda:0", "cpu", "mps"')]
    precision: Annotated[str, Fact('"fp32", "tf32", "bf16", "fp16", "complex64", "complex128"')]
    batch_size: int
    max_batch_size: Annotated[int | None, Fact("largest batch that is safe in memory")]
    workload: Annotated[str, Fact("what was tuned, as it is named on the command line")]
    fingerprint: Annotated[str, Fact("device, memory, driver, torch and cupy: what makes the profile stale")]
    mode: Annotated[str, Fact('"training" or "inference"; empty where it is the user\'s own')] = ""
    created_at: Annotated[str, Fact("UTC time in ISO 8601")] = ""
    throughput: Annotated[float | None, Fact("samples per second that were measured")] = None
    unit: Annotated[str, Fact('unit of the throughput: "samples/s"')] = ""
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
