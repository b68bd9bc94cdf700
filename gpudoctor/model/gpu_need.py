"""What is concluded of whether programs here need an NVIDIA GPU, and of whether there is one."""

from __future__ import annotations

from typing import Annotated

from gpudoctor.model.fact import Fact
from gpudoctor.model.record import record
from gpudoctor.model.symptom import Symptom


@record
class GpuNeed:
    """Whether something asks for an NVIDIA GPU, whether one answers, and what says that there is none."""

    asked: Annotated[bool | None, Fact("by a CUDA build, or by a program that misses a GPU")] = None
    answers: Annotated[bool, Fact("NVML, the driver, its kernel module or PyTorch shows one")] = False
    denied: Annotated[Symptom | None, Fact("what says that there is none")] = None
