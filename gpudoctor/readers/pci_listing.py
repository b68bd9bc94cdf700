"""GPUs that `lspci`, `lshw` and `ubuntu-drivers` list."""

import itertools
import re
from collections.abc import Iterator, Sequence

from gpudoctor.model import PciGpu, System
from gpudoctor.readers.facts import Facts
from gpudoctor.readers.text import Text, regex

_ADDRESS = r"(?:([0-9a-f]{4,8}):)?([0-9a-f]{2}:[0-9a-f]{2}\.[0-7])"
_ROW = regex(rf"^\s*{_ADDRESS} ([A-Z0-9][\w /-]{{2,60}}?)(?: \[([0-9a-f]{{4}})\])?: (\S.{{0,250}})$", ": ")
_DISPLAY = regex(r"VGA compatible controller|3D controller|Display controller|Processing accelerators|Video device")
_IDS = regex(r"\[([0-9a-f]{4}):([0-9a-f]{4})\]")
_BOUND = regex(r"^\s+Kernel driver in use: ([\w-]{1,40})")
_VENDORS = (
    ("nvidia", regex(r"(?i)NVIDIA|10de:")),
    ("amd", regex(r"Advanced Micro Devices|\bAMD\b|\bATI\b|1002:")),
    ("intel", regex(r"Intel|8086:")),
)
# Displays that hypervisors emulate, as lspci names them.
_EMULATED = regex(r"(?i)Device 1234:1111|Virtio|QXL|VMware|VirtualBox|Hyper-V|Cirrus Logic GD 5446|Bochs")
_COMMAND = regex(
    r"(?i)^\s*(?:[#$>]\s*)?(?:sudo\s+)?lspci\b[^|]{0,40}\|\s*e?grep\s+(?:-\w+\s+)*[\"']?([\w|\\ ]{2,60})[\"']?\s*$",
    "lspci",
)
_MODEL = regex(r"^\s*model\s+: (.{3,120})$", "model")
_ALIAS = regex(r"modalias : pci:v0000([0-9A-F]{4})d0000([0-9A-F]{4})", "modalias")
_LSHW = regex(
    r"product: (\S.{2,100}?) vendor: NVIDIA Corporation .{0,200}?bus info: pci@([0-9a-f:.]{7,16})"
    r" .{0,500}?(?:driver=([\w-]{1,30})|UNCLAIMED|resources:)"
)

_INXI = regex(r"\bDevice-\d: (NVIDIA .{2,100}?) (?:vendor: .{1,60}? )?driver: ()([\w-]{1,30})", "Device-")


def read_pci(text: Text) -> Iterator[Facts]:
    """Yield the GPUs on the PCI bus. A list without an NVIDIA GPU counts only if it would show one."""
    found = [*_rows(text.lines), *_others(text)]
    unique = tuple({gpu.address or gpu.name: gpu for gpu in reversed(found)}.values())[::-1][:64]
    if any(gpu.vendor == "nvidia" for gpu in unique) or (unique and _is_whole(text)):
        yield {"system": System(pci_gpus=unique, os="linux")}
    elif not unique and (_answered_nothing(text.lines) or _is_of_a_virtual_machine(text)):
        yield {"system": System(pci_gpus=(), os="linux")}


def _rows(lines: Sequence[str]) -> Iterator[PciGpu]:
    for number, line in enumerate(lines):
        row = _ROW.match(line)
        if row is None or not _DISPLAY.match(row[3]):
            continue
        vendor = next((vendor for vendor, pattern in _VENDORS if pattern.search(row[5])), None)
        if vendor is not None:
            yield PciGpu(
                address=f"{(row[1] or '0000')[-4:]}:{row[2]}",
                vendor=vendor,
                device_id=_device_id(row[5]),
                name=_product(row[5], vendor),
                bound_driver=_bound(lines[number + 1 : number + 25]),
            )


def _device_id(text: str) -> str:
    ids = _IDS.findall(text)
    device = re.search(r"Corporation Device ([0-9a-f]{4})\b", text)
    return (ids[-1][1] if ids else device[1] if device else "").upper()


def _product(text: str, vendor: str) -> str:
    """Return the product name: the last brackets without ids and vendor."""
    plain = _IDS.sub("", text)
    shown = re.findall(r"\[([^\[\]]{2,100})\]", plain)
    name = next((name for name in reversed(shown) if not re.fullmatch(r"AMD(?:/ATI)?|rev \w\w", name)), "")
    return f"NVIDIA {name}" if name and vendor == "nvidia" and not name.startswith("NVIDIA") else name


def _bound(lines: Sequence[str]) -> str:
    below = itertools.takewhile(lambda line: not _ROW.match(line), lines)
    return next((match[1] for match in map(_BOUND.match, below) if match), "")


def _others(text: Text) -> Iterator[PciGpu]:
    alias = None
    for line in text.lines:
        alias = _ALIAS.search(line) or alias
        model = _MODEL.match(line)
        if model and alias and alias[1] == "10DE":
            name = _product(model[1], "nvidia") or model[1].strip()
            yield PciGpu(address="", vendor="nvidia", device_id=alias[2], name=name)
            alias = None
    for match in (*_LSHW.finditer(text.flat), *_INXI.finditer(text.flat)):
        name = _product(match[1], "nvidia")
        yield PciGpu(address=match[2][-12:], vendor="nvidia", device_id="", name=name, bound_driver=match[3] or "")


def _is_whole(text: Text) -> bool:
    """Return whether the list would show an NVIDIA GPU: it is the whole bus, or was filtered by "nvidia" or "3D"."""
    others = sum(bool(row) and not _DISPLAY.match(row[3]) for row in map(_ROW.match, text.lines) if row)
    filtered = [match[1].lower() for match in map(_COMMAND.match, text.lines) if match]
    return others >= 5 or any("nvidia" in words or "3d" in words for words in filtered)


def _is_of_a_virtual_machine(text: Text) -> bool:
    """Return whether the list is the whole bus, and all its displays are emulated by a hypervisor."""
    displays = [row[5] for row in map(_ROW.match, text.lines) if row and _DISPLAY.match(row[3])]
    return bool(displays) and all(map(_EMULATED.search, displays)) and _is_whole(text)


def _answered_nothing(lines: Sequence[str]) -> bool:
    """Return whether `lspci | grep -i nvidia` printed nothing: the next line is not a row.

    A text that ends there may be cut off.
    """
    for number, line in enumerate(lines):
        command = _COMMAND.match(line)
        if command and command[1].lower() == "nvidia" and any(after.strip() for after in lines[number + 1 :]):
            return not any(_ROW.match(after) or "nvidia" in after.lower() for after in lines[number + 1 : number + 3])
    return False
