"""One part of a profile's fingerprint: what the profile was found on, and what this machine is."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from gpudoctor.model.record import record
from gpudoctor.model.versions import PackageVersion

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
        return None if self.now is None else _AGREE.get(self.name, _same)(self.was, self.now)


def fingerprint_value(text: str) -> str:
    """Return `text` with "_" for each character that a part of a fingerprint cannot hold: "NVIDIA_H200"."""
    return re.sub(r"[^A-Za-z0-9_./+-]", "_", text)


def fingerprint_memory(size_bytes: int) -> str:
    """Return a size as a fingerprint has it: "140.4GiB"."""
    return f"{size_bytes / 2**30:.1f}GiB"


def _same(was: str, now: str) -> bool:
    return was == now


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
