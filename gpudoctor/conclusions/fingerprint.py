"""A profile's fingerprint, compared with this machine."""

from collections.abc import Sequence

from gpudoctor.model import Cupy, Device, Devices, Driver, FingerprintPart, FoundProfile, Torch
from gpudoctor.model.profile import MIG, fingerprint_memory, fingerprint_value, same_device, same_memory

FITS = "fits"
STALE = "stale"
UNDECIDED = "cannot be determined"

NONE = "none"
"""The value if the machine lacks it; None means unknown."""

SECTIONS = ("devices", "driver", "torch", "cupy")
"""The sections of a snapshot that `compare` takes."""

_LONGEST = 100
_PARTS = ("device", "memory", "driver", "torch", "cupy")
_Now = tuple[str | None, tuple[str, ...]]  # the value, and its facts
_UNKNOWN: _Now = (None, ())


def fingerprint(
    profile: FoundProfile | None, devices: Devices, driver: Driver | None, torch: Torch | None, cupy: Cupy | None
) -> tuple[FingerprintPart, ...]:
    """Return the fingerprint parts of the profile in the working directory; () without a profile."""
    tuned_on = (profile.fingerprint if profile is not None else None) or ""
    return compare(tuned_on, devices=devices, driver=driver, torch=torch, cupy=cupy)


def parts_of(fingerprint: str) -> dict[str, str]:
    """Return the parts by their names; empty ones are left out."""
    pairs = (part.partition(":")[::2] for part in fingerprint.split(","))
    return {name: value[:_LONGEST] for name, value in pairs if name in _PARTS and value}


def compare(
    fingerprint: str,
    *,
    devices: Devices = None,
    driver: Driver | None = None,
    torch: Torch | None = None,
    cupy: Cupy | None = None,
) -> tuple[FingerprintPart, ...]:
    """Return each fingerprint part with this machine's value; None if its section is unknown."""
    parts = parts_of(fingerprint)
    device = parts.get("device", "")
    if "+rocm" in parts.get("torch", ""):
        devices = None  # the section has only NVIDIA GPUs
    if MIG in device or devices == ():
        parts.pop("memory", None)
    now = {
        "device": _device_now(device, devices, torch),
        "memory": _memory_now(parts.get("memory", ""), device, devices),
        "driver": _version(driver, "driver", driver is not None and driver.installed is False, "driver.installed"),
        "torch": _version(torch, "torch", torch is not None and torch.installed is False, "torch.installed"),
        "cupy": _version(cupy, "cupy", cupy is not None and cupy.distributions == (), "cupy.distributions"),
    }
    return tuple(
        FingerprintPart(name=name, was=was, now=now[name][0], facts=now[name][1]) for name, was in parts.items()
    )


def fit(parts: Sequence[FingerprintPart]) -> str:
    """Return STALE if a part differs, FITS if all are known and equal, else UNDECIDED."""
    answers = [part.fits for part in parts]
    if False in answers:
        return STALE
    return FITS if answers and None not in answers else UNDECIDED


def _version(section: Driver | Torch | Cupy | None, name: str, absent: bool, absence: str) -> _Now:
    """Return the version in a section unless it is unknown or absent. absence: the fact for absence."""
    version = section.version if section is not None else None
    if version is not None:
        return fingerprint_value(str(version)), (f"{name}.version",)
    return (NONE, (absence,)) if absent else _UNKNOWN


def _device_now(was: str, devices: Devices, torch: Torch | None) -> _Now:
    """Return the device with that name, else all names: a profile fits if its device is one of several."""
    if was == "cpu":
        return "cpu", ()
    if was == "mps":
        build = torch.build if torch is not None else None
        return _UNKNOWN if build is None else ("mps" if build == "mps" else NONE, ("torch.build",))
    if not devices:
        return _UNKNOWN if devices is None else (NONE, ("devices",))
    names = {number: _device_name(device) for number, device in enumerate(devices) if device.name}
    fitting = {number: name for number, name in names.items() if same_device(was, name)}
    if not fitting and len(names) < len(devices):
        return _UNKNOWN  # the device without a name may be it
    shown = fitting or names
    return " + ".join(dict.fromkeys(shown.values())), tuple(f"devices[{number}].name" for number in shown)


def _memory_now(was: str, device_was: str, devices: Devices) -> _Now:
    """Return the memory of the devices with that name, else of any device: a matching size if there is one."""
    sizes = {n: fingerprint_memory(d.memory_total_bytes) for n, d in enumerate(devices or ()) if d.memory_total_bytes}
    named = {n: size for n, size in sizes.items() if same_device(device_was, _device_name((devices or ())[n]))}
    candidates = named or sizes
    if not candidates:
        return _UNKNOWN
    number = next((n for n, size in candidates.items() if same_memory(was, size)), min(candidates))
    return candidates[number], (f"devices[{number}].memory_total_bytes",)


def _device_name(device: Device) -> str:
    """Return the name as CUDA reports it; NVML adds a word on a Jetson."""
    return fingerprint_value((device.name or "").removesuffix(" (nvgpu)"))
