"""Whether PyTorch's build has machine code for the GPUs."""

from __future__ import annotations

from typing import Annotated

from gpudoctor.model.fact import Fact
from gpudoctor.model.gpu import KnownGpu
from gpudoctor.model.record import record
from gpudoctor.model.symptom import Symptom


@record
class TorchKernels:
    """The GPUs in question, the machine code in PyTorch's build, and who says that there is none for the GPU.

    runs: for each of `gpus` whether the code runs on it; None if the builds that it may be differ.
    """

    gpus: tuple[KnownGpu, ...] = ()
    runs: tuple[bool | None, ...] = ()
    code: Annotated[str, Fact('what the build has code for, in words: "sm_80 sm_90"; empty if unknown')] = ""
    fact: Annotated[str, Fact("path of the fact that shows it")] = ""
    source: Annotated[str, Fact("source of the table, if the release shows it")] = ""
    complaint: Annotated[Symptom | None, Fact("PyTorch, CUDA or ptxas says that there is no code for the GPU")] = None
    failed: Annotated[Symptom | None, Fact("a kernel of a report, not only of PyTorch, has no code for the GPU")] = None
    ptxas: Annotated[Symptom | None, Fact("Triton's ptxas does not know the GPU")] = None
    refused: Annotated[Symptom | None, Fact("an NVRTC that is not CuPy's does not compile for the GPU")] = None

    @property
    def missing(self) -> tuple[KnownGpu, ...]:
        """The GPUs on which the code does not run, one of each compute capability."""
        without = [gpu for gpu, runs in zip(self.gpus, self.runs, strict=True) if runs is False]
        return tuple({gpu.capability: gpu for gpu in reversed(without)}.values())
