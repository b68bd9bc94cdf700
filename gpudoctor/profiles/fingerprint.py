"""What a profile was found on, in one readable value.

    device:NVIDIA_H200,memory:140.4GiB,driver:550.54.15,torch:2.13.0+cu130,cupy:13.6.0

A part that was not known, or not there, is left out. gpudoctor/conclusions/fingerprint.py compares it with a machine.
"""

from __future__ import annotations

from gpudoctor.model import DriverVersion, fingerprint_memory, fingerprint_value
from gpudoctor.model.tuning import TunedDevice


def fingerprint_of(device: TunedDevice) -> str:
    """Return the fingerprint of the device, with the versions, that was tuned."""
    cuda = device.kind == "cuda"
    memory = device.memory_total_bytes
    parts = {
        "device": device.name if cuda else device.kind,
        "memory": fingerprint_memory(memory) if cuda and memory else None,
        "driver": _driver_version(device.driver_version) if cuda else None,
        "torch": device.torch_version,
        "cupy": device.cupy_version,
    }
    return ",".join(f"{name}:{fingerprint_value(text)}" for name, text in parts.items() if text)


def _driver_version(text: str | None) -> str | None:
    """Return the version as it is written everywhere: "535.54.03", never "535.54.3"."""
    try:
        return str(DriverVersion.parse(text)) if text else None
    except ValueError:
        return text
