"""What an image requires of its host's driver, as NVIDIA_REQUIRE_CUDA puts it."""

from __future__ import annotations

import re

from gpudoctor.model.record import record
from gpudoctor.model.versions import CudaVersion, DriverVersion


@record
class DriverCondition:
    """A condition such as "cuda>=12.6 brand=tesla,driver>=470,driver<471".

    A blank separates alternatives, a comma what one of them requires together.
    Source: https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/docker-specialized.html
    """

    text: str

    @property
    def cuda(self) -> CudaVersion | None:
        """The CUDA version that the first alternative asks for."""
        match = re.search(r"\bcuda>=?(\d{1,3}(?:\.\d{1,3})?)", self.text)
        return CudaVersion.parse(match[1]) if match else None

    @property
    def driver(self) -> DriverVersion | None:
        """The driver version that the first alternative asks for."""
        match = re.search(r"\bdriver>=?(\d{1,4}(?:\.\d{1,4}){0,2})", self.text)
        return DriverVersion.parse(match[1]) if match else None

    @property
    def label(self) -> str:
        """The first alternative and the number of the others, for a sentence."""
        first, *others = self.text.split()
        return f"{first} (or one of {len(others)} alternatives)" if others else first

    def is_met(self, offered: CudaVersion, driver: DriverVersion | None) -> bool:
        """Return whether a driver that offers this CUDA version meets one of the alternatives.

        What cannot be compared, such as the brand of the GPU, counts as met: the runtime checks it anyway.
        """
        return any(
            all(_is_met(condition, offered, driver) for condition in alternative.split(","))
            for alternative in self.text.split()
        )


def condition_of_cuda_version(text: str | None) -> str:
    """Return the condition of an image that only names its CUDA version: within a major version the minor is free."""
    match = re.match(r"\d{1,3}(?=\.\d)", text or "")
    return f"cuda>={match[0]}.0" if match else ""


def _is_met(condition: str, offered: CudaVersion, driver: DriverVersion | None) -> bool:
    match = re.fullmatch(r"(cuda|driver)(>=|<=|!=|=|<|>)(\d{1,4}(?:\.\d{1,4}){0,3})", condition)
    if match is None:
        return True
    wanted = tuple(int(part) for part in match[3].split("."))
    present = (offered.major, offered.minor) if match[1] == "cuda" else driver.parts if driver is not None else None
    if present is None:
        return True
    length = max(len(wanted), len(present))
    left, right = (part + (0,) * (length - len(part)) for part in (present, wanted))
    return {
        ">=": left >= right,
        "<=": left <= right,
        "!=": left != right,
        "=": left == right,
        "<": left < right,
        ">": left > right,
    }[match[2]]
