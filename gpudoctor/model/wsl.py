"""What is concluded of WSL: whether a program in it misses the GPU, and what keeps the driver of Windows out."""

from __future__ import annotations

from typing import Annotated

from gpudoctor.model.fact import Fact
from gpudoctor.model.record import record


@record
class Wsl:
    """How the NVIDIA driver of Windows reaches into WSL. A text or path is empty if there is nothing to say."""

    version: Annotated[int | None, Fact("1 or 2 inside WSL, 0 outside")] = None
    works: Annotated[bool, Fact("CUDA or NVML works in it, whatever lies around")] = False
    failure: Annotated[str, Fact("path of the fact in which something misses the GPU or its driver")] = ""
    blocked: Annotated[str, Fact("path of the fact in which NVML says that GPU access is blocked")] = ""
    old_kernel: Annotated[str, Fact("release of a WSL 2 kernel that is older than GPU support")] = ""
    old_windows: Annotated[str, Fact('a Windows without GPUs in WSL 2: "Windows 10 2004"')] = ""
    old_windows_fact: str = ""
    driver_inside: Annotated[str, Fact("file of a Linux driver inside WSL")] = ""
    driver_inside_fact: str = ""
