"""The text of /proc/driver/nvidia/version."""

from __future__ import annotations

import re

from gpudoctor.model.record import record
from gpudoctor.model.versions import DriverVersion

# "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.129.03  Thu Oct 19 18:56:32 UTC 2023"
# "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  565.57.01  Release Build  (builder@host)  Thu Oct 10 ..."
_LINE = r"NVRM version:.*?Kernel Module(?:\s+for\s+\S+)?\s+(\d+(?:\.\d+)+)"


@record
class KernelModule:
    """The loaded kernel module. flavor: "open" or "proprietary"."""

    version: DriverVersion
    flavor: str


def parse_proc_driver_version(text: str) -> KernelModule:
    """Return the kernel module that the text describes.

    Raises:
        ValueError: the text names no kernel module with its version.
    """
    match = re.search(_LINE, text)
    if match is None:
        raise ValueError(f"no version of the NVIDIA kernel module: {text[:200]!r}")
    flavor = "open" if "Open Kernel Module" in match[0] else "proprietary"
    return KernelModule(version=DriverVersion.parse(match[1]), flavor=flavor)
