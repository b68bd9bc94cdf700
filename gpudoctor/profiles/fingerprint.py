"""What a profile was found on, in one readable value, and whether a machine is still that.

    device:NVIDIA_H200,memory:140.4GiB,driver:550.54.15,torch:2.13.0+cu130,cupy:13.6.0

A part that was not known, or not there, is left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from gpudoctor.model.machine import Device, Driver
from gpudoctor.model.record import record
from gpudoctor.model.software import Cupy, Torch
from gpudoctor.model.versions import DriverVersion, PackageVersion
from gpudoctor.parsers.profile_variables import allowed

if TYPE_CHECKING:  # slow, and a check needs none of it
    from gpudoctor.model.tuning import TunedDevice

FITS = "fits"
STALE = "stale"
UNDECIDED = "cannot be told"

NONE = "none"
"""What a machine has that has no such thing; unknown is None."""

MEMORY_TOLERANCE = 0.05
"""PyTorch leaves out what the driver reserves: of an RTX 4090 it tells 23.6 GiB, NVML 24.0 GiB."""

_GIB = 2**30
_LONGEST = 100
SECTIONS = ("devices", "driver", "torch", "cupy")
"""Of a snapshot, what `compare` takes."""

_PARTS = ("device", "memory", "driver", "torch", "cupy")
_Now = tuple[str | None, tuple[str, ...]]  # what it is, and the facts that tell it
_UNKNOWN: _Now = (None, ())
_MIG = "_MIG_"  # "NVIDIA_A100-SXM4-40GB_MIG_1g.5gb": NVML tells the name and memory of the whole device


@record
class Part:
    """One part of a fingerprint.

    name: "device", "memory", "driver", "torch" or "cupy".
    was: as the profile has it.
    now: as this machine is; None where that is not known.
    facts: dotted paths of the facts that tell it.
    """

    name: str
    was: str
    now: str | None
    facts: tuple[str, ...] = ()

    @property
    def fits(self) -> bool | None:
        """Whether the machine is still what it was; None where that is not known."""
        return None if self.now is None else _AGREE.get(self.name, _same)(self.was, self.now)


def fingerprint_of(device: TunedDevice) -> str:
    """Return the fingerprint of the device, with the versions, that was tuned."""
    cuda = device.kind == "cuda"
    memory = device.memory_total_bytes
    parts = {
        "device": device.name if cuda else device.kind,
        "memory": _gibibytes(memory) if cuda and memory else None,
        "driver": _driver_version(device.driver_version) if cuda else None,
        "torch": device.torch_version,
        "cupy": device.cupy_version,
    }
    return ",".join(f"{name}:{_value(text)}" for name, text in parts.items() if text)


def _gibibytes(size: int) -> str:
    return f"{size / _GIB:.1f}GiB"


def _driver_version(text: str | None) -> str | None:
    """Return the version as it is written everywhere: "535.54.03", never "535.54.3"."""
    try:
        return str(DriverVersion.parse(text)) if text else None
    except ValueError:
        return text


def _value(text: str) -> str:
    return re.sub(r"[,:]", "_", allowed(text))


def parts_of(fingerprint: str) -> dict[str, str]:
    """Return the parts by their names; what is none is passed over."""
    pairs = (part.partition(":")[::2] for part in fingerprint.split(","))
    return {name: value[:_LONGEST] for name, value in pairs if name in _PARTS and value}


def compare(
    fingerprint: str,
    *,
    devices: tuple[Device, ...] | None = None,
    driver: Driver | None = None,
    torch: Torch | None = None,
    cupy: Cupy | None = None,
) -> tuple[Part, ...]:
    """Return each part of the fingerprint beside what this machine is; of an unknown section that is unknown too."""
    parts = parts_of(fingerprint)
    device = parts.get("device", "")
    if "+rocm" in parts.get("torch", ""):
        devices = None  # the section knows NVIDIA's alone
    if _MIG in device or devices == ():
        parts.pop("memory", None)
    now = {
        "device": _device_now(device, devices, torch),
        "memory": _memory_now(parts.get("memory", ""), device, devices),
        "driver": _version(driver, "driver", driver is not None and driver.installed is False, "driver.installed"),
        "torch": _version(torch, "torch", torch is not None and torch.installed is False, "torch.installed"),
        "cupy": _version(cupy, "cupy", cupy is not None and cupy.distributions == (), "cupy.distributions"),
    }
    return tuple(Part(name=name, was=was, now=now[name][0], facts=now[name][1]) for name, was in parts.items())


def fit(parts: Sequence[Part]) -> str:
    """Return STALE where a part differs, FITS where each is known and none does, else UNDECIDED."""
    answers = [part.fits for part in parts]
    if False in answers:
        return STALE
    return FITS if answers and None not in answers else UNDECIDED


def _version(section: Driver | Torch | Cupy | None, name: str, absent: bool, absence: str) -> _Now:
    """Return the version in a section, where it is not unknown or absent.

    absence: the fact that says so.
    """
    version = section.version if section is not None else None
    if version is not None:
        return _value(str(version)), (f"{name}.version",)
    return (NONE, (absence,)) if absent else _UNKNOWN


def _device_now(was: str, devices: tuple[Device, ...] | None, torch: Torch | None) -> _Now:
    """Return the device of that name, else every name: a profile fits where its device is one of several."""
    if was == "cpu":
        return "cpu", ()
    if was == "mps":
        build = torch.build if torch is not None else None
        return _UNKNOWN if build is None else ("mps" if build == "mps" else NONE, ("torch.build",))
    if not devices:
        return _UNKNOWN if devices is None else (NONE, ("devices",))
    names = {number: _device_name(device) for number, device in enumerate(devices) if device.name}
    fitting = {number: name for number, name in names.items() if _same_device(was, name)}
    if not fitting and len(names) < len(devices):
        return _UNKNOWN  # it may be the one that tells no name
    shown = fitting or names
    return " + ".join(dict.fromkeys(shown.values())), tuple(f"devices[{number}].name" for number in shown)


def _memory_now(was: str, device_was: str, devices: tuple[Device, ...] | None) -> _Now:
    """Return the memory of the devices of that name, of any device where there is none: the one that fits, if any."""
    sizes = {n: _gibibytes(d.memory_total_bytes) for n, d in enumerate(devices or ()) if d.memory_total_bytes}
    named = {n: size for n, size in sizes.items() if _same_device(device_was, _device_name((devices or ())[n]))}
    told = named or sizes
    if not told:
        return _UNKNOWN
    number = next((n for n, size in told.items() if _same_memory(was, size)), min(told))
    return told[number], (f"devices[{number}].memory_total_bytes",)


def _device_name(device: Device) -> str:
    """Return the name as CUDA tells it; NVML adds a word on a Jetson."""
    return _value((device.name or "").removesuffix(" (nvgpu)"))


def _same(was: str, now: str) -> bool:
    return was == now


def _same_device(was: str, now: str) -> bool:
    return was.partition(_MIG)[0] == now.partition(_MIG)[0]


def _same_memory(was: str, now: str) -> bool:
    before, after = _amount(was), _amount(now)
    return (
        was == now if before is None or after is None else abs(before - after) <= MEMORY_TOLERANCE * max(before, after)
    )


def _amount(text: str) -> float | None:
    match = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,3})?)GiB", text)
    return float(match[1]) if match else None


def _same_version(was: str, now: str) -> bool:
    """Tell whether the versions agree. A report may tell less than the profile: "2.13.0" of "2.13.0+cu130"."""
    before, after = PackageVersion(was), PackageVersion(now)
    return before.agrees_with(after) and before.public == after.public


_AGREE: Mapping[str, Callable[[str, str], bool]] = {
    "device": _same_device,
    "memory": _same_memory,
    "torch": _same_version,
}
