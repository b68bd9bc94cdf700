"""The PyTorch that an installer was asked for and did not find."""

from __future__ import annotations

import re
from typing import Annotated

from gpudoctor.model.fact import Fact
from gpudoctor.model.record import record
from gpudoctor.model.versions import PackageVersion


@record
class TorchRequest:
    """What was asked for, and what the installer said; `fact` is empty if no installer failed."""

    fact: Annotated[str, Fact("path of the installer's message")] = ""
    tool: Annotated[str, Fact('"pip", "uv", "conda" or "poetry"')] = ""
    package: str = "torch"
    specifier: str = ""
    version: Annotated[PackageVersion | None, Fact("of torch, if it is pinned and known")] = None
    available: Annotated[tuple[str, ...] | None, Fact("versions that were there; None if the message names none")] = (
        None
    )
    index: Annotated[str | None, Fact('PyTorch\'s index that was named: "cu121", "nightly/cu128", ""')] = None
    tag: Annotated[str, Fact('platform without a wheel, if the tool names it: "macosx_13_0_x86_64"')] = ""
    platform: Annotated[str | None, Fact("the tables' name of the platform; empty for one without wheels")] = None
    is_about_python: Annotated[bool, Fact("the Python or the platform has no wheel; else the index lacks it")] = False

    @property
    def asked(self) -> str:
        """What was asked for, for a sentence: "torch==2.4.1"."""
        return f"{self.package}{self.specifier}"

    @property
    def variant(self) -> str:
        """The build that was asked for by version or index: "cu121", "rocm6.1", "cpu"; "" for none."""
        local = self.version.local if self.version is not None else ""
        last = (self.index or "").rpartition("/")[2]
        return local or (last if re.fullmatch(r"(?:cu|rocm)\d[\d.]*|cpu|xpu", last) else "")

    @property
    def wheel_platform(self) -> str | None:
        """The platform whose wheels count: CUDA and ROCm wheels are mostly for Linux."""
        return "linux_x86_64" if self.platform is None and self.variant.startswith(("cu", "rocm")) else self.platform
