"""The driver as libcuda tells of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpudoctor.host import Question, Setting
from gpudoctor.model import CudaVersion, Driver
from gpudoctor.probes.untrusted import cleaned


def question(_setting: Setting) -> Question:
    """Return the question."""
    return Question(name="cuda-driver", worker="cuda_driver")


def parse_cuda_driver(facts: Mapping[str, Any]) -> Driver:
    """Return the driver as far as libcuda knows it."""
    if "library_error" in facts:
        return Driver(libcuda_path="", libcuda_error=cleaned(str(facts["library_error"])))
    number = facts.get("cuda_version")
    return Driver(
        libcuda_path=cleaned(str(facts["path"])),
        libcuda_error="",
        cuda_version=CudaVersion.from_number(int(number)) if number else None,
        cuda_init_code=facts.get("init_code"),
        cuda_init_error=cleaned(str(facts.get("init_error", ""))),
        cuda_device_count=facts.get("device_count"),
    )
