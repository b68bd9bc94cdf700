"""The lines of `gpustat`: "[0] Tesla V100-SXM2-32GB | 54°C, 100 % |  5855 / 32768 MB | somebody(2806M)"."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gpudoctor.model import Device, Driver, DriverVersion
from gpudoctor.parsers.nvidia_smi_xml import MAXIMUM_DEVICES, MIB
from gpudoctor.readers.facts import Facts
from gpudoctor.readers.text import Text

SOURCE = "gpustat"

# Source: gpustat/core.py of gpustat 1.1. "?" and "??" stand for what NVML does not tell.
_DEVICE = re.compile(
    r"^\[(?P<index>\d{1,2})\] (?P<name>[^|\n]{3,60}?) *\| *(?P<temperature>\d{1,3}|\?{1,2}) ?(?:°C|'C)"
    r"[^|\n]{0,60}\| *(?P<used>\d{1,7}|\?{1,2}) / *(?P<total>\d{1,7}) MB"
)
_HEAD = re.compile(
    r"^\S{1,80} .{0,10}\w{3} \w{3} {1,2}\d{1,2} \d\d:\d\d:\d\d \d{4} {1,4}(?P<driver>\d{2,4}(?:\.\d{1,4}){1,2})$"
)


def read(text: Text) -> Facts:
    """Return the devices that the text lists, and the driver above them."""
    devices = {device.nvml_index: device for device in _devices(text)}
    if not devices:
        return {}
    heads = (_HEAD.match(line.strip()) for line in text.lines)
    version = next((match["driver"] for match in heads if match), None)
    return {
        "devices": tuple(devices[index] for index in sorted(devices))[:MAXIMUM_DEVICES],
        "driver": Driver(installed=True, version=DriverVersion.parse(version) if version else None),
    }


def _devices(text: Text) -> Iterator[Device]:
    if " mb" not in text.lowered:
        return
    for line in text.lines:
        match = _DEVICE.match(line.strip())
        if match:
            yield Device(
                nvml_index=int(match["index"]),
                name=match["name"].strip(),
                temperature_celsius=_number(match["temperature"]),
                memory_used_bytes=_bytes(match["used"]),
                memory_total_bytes=_bytes(match["total"]),
            )


def _number(digits: str) -> int | None:
    return int(digits) if digits.isdigit() else None


def _bytes(digits: str) -> int | None:
    return int(digits) * MIB if digits.isdigit() else None
