"""What several checks of devices have in common."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from gpudoctor.data import Features, capability_of, is_minor_turing
from gpudoctor.model import ComputeCapability, CudaDevice, Device, Finding
from gpudoctor.registry import known, skip_unless


def reachable(devices: Sequence[Device]) -> list[tuple[str, Device]]:
    """Return each device that answers, with the dotted path of its facts: "devices[0]".

    Raises:
        Skip: there is none.
    """
    skip_unless(devices, "there is no NVIDIA device")
    answering = [(f"devices[{number}]", device) for number, device in enumerate(devices) if not device.error]
    skip_unless(answering, "no NVIDIA device answers")
    return answering


def settled(findings: Iterable[Finding], answering: Iterable[tuple[str, Device]], *names: str) -> Iterator[Finding]:
    """Yield the findings. Where there are none, each of the facts `names` must be known of every device.

    Raises:
        Skip: no finding, and one of the facts is unknown.
    """
    found = tuple(findings)
    yield from found
    if not found:
        for path, device in answering:
            for name in names:
                known(getattr(device, name), f"{path}.{name}")


def label(device: Device) -> str:
    """Return the name of `device` for a sentence: "GPU 0 (NVIDIA A100-SXM4-80GB)"."""
    return f"GPU {device.nvml_index}" + (f" ({device.name})" if device.name else "")


def known_facts(path: str, device: Device | CudaDevice, *names: str) -> tuple[str, ...]:
    """Return the dotted paths of those fields that are known."""
    return tuple(f"{path}.{name}" for name in names if getattr(device, name) is not None)


def capability(device: Device) -> ComputeCapability | None:
    """Return the compute capability, by the product where the driver did not tell it; None where unknown."""
    return device.compute_capability or capability_of(device.name, device.pci_device_id)


def has_tensor_cores(device: Device, table: Features | None) -> bool | None:
    """Return whether the device has tensor cores; None where that is not known.

    table: what its compute capability has in general.
    """
    if table is None:
        return None
    return False if table.tensor_cores and _lacks_tensor_cores(table, device) else table.tensor_cores


def _lacks_tensor_cores(table: Features, device: Device) -> bool:
    return table.capability == ComputeCapability(7, 5) and is_minor_turing(device.name)


def ranges(numbers: Iterable[int]) -> str:
    """Return device numbers in short: "0-3, 5"."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
