"""The machine in a few lines: its devices, and what is installed on it."""

from collections import Counter
from collections.abc import Sequence

from gpudoctor.model import Device, Driver, Python, Snapshot, System
from gpudoctor.reporters.text import wrap, wrap_parts
from gpudoctor.untrusted import clean

_DEVICES_SHOWN = 16
_LONGEST = 60  # characters of a name or version, whatever a report says
_NAMES = {"linux": "Linux", "windows": "Windows", "darwin": "macOS"}
HEADERS = ("GPU", "name", "compute\ncapability", "memory", "busy", "")


def device_lines(snapshot: Snapshot, width: int) -> list[str]:
    """Return the devices: a table of several, a line each if it does not fit; nothing if there is none."""
    devices = (snapshot.devices or ())[:_DEVICES_SHOWN]
    rows = [device_row(device) for device in devices]
    lines = _table(rows) if len(rows) > 1 and not any(d.error for d in devices) else []
    if not lines or max(len(line) for line in lines) > width:
        lines = [line for device, row in zip(devices, rows, strict=True) for line in _line(device, row, width)]
    left_out = len(snapshot.devices or ()) - len(devices)
    return [*lines, f"and {left_out} more devices"] if left_out else lines


def _table(rows: Sequence[tuple[str, ...]]) -> list[str]:
    from tabulate import tabulate  # about 30 ms to import (2026-11-20): only a table of several devices is worth it

    return tabulate(rows, headers=HEADERS, tablefmt="plain", disable_numparse=True).splitlines()


def device_row(device: Device) -> tuple[str, ...]:
    """Return the cells of a device under `HEADERS`."""
    return (
        str(device.nvml_index),
        clean(device.name or "unknown GPU", _LONGEST),
        str(device.compute_capability or "unknown"),
        _memory(device),
        "" if device.utilization_percent is None else f"{device.utilization_percent} %",
        "" if device.temperature_celsius is None else f"{device.temperature_celsius} °C",
    )


def _memory(device: Device) -> str:
    used, total = device.memory_used_bytes, device.memory_total_bytes
    if total is None:
        return "unknown"
    part = "" if used is None else f"{used / 2**30:.1f} of "
    return f"{part}{total / 2**30:.1f} GiB"


def _line(device: Device, row: tuple[str, ...], width: int) -> list[str]:
    index, name, capability, memory, use, temperature = row
    if device.error:
        return wrap(f"GPU {index}: {name}: {clean(device.error)}", width, "", "  ")
    known = (f"GPU {index}: {name}", f"compute capability {capability}", f"memory {memory}")
    return wrap_parts(filter(None, (*known, use and f"{use} busy", temperature)), ", ", width)


def gpu_parts(snapshot: Snapshot) -> list[str]:
    """Return the GPUs of each kind in a few words: "2 x NVIDIA H200 (141.0 GiB)"."""
    kinds = Counter((clean(d.name or "unknown GPU", _LONGEST), d.memory_total_bytes) for d in snapshot.devices or ())
    return [
        (f"{amount} x " if amount > 1 else "") + name + (f" ({size / 2**30:.1f} GiB)" if size else "")
        for (name, size), amount in list(kinds.items())[:4]
    ]


def machine_line(snapshot: Snapshot, width: int) -> list[str]:
    """Return what is installed, in lines of `width` columns."""
    return wrap_parts(machine_parts(snapshot), " · ", width)


def machine_parts(snapshot: Snapshot) -> list[str]:
    """Return what is installed, in a few words each; a part that is not known says so."""
    drivers_and_python = (_python(snapshot.python), _driver(snapshot.driver))
    return [*_system(snapshot.system or System()), *drivers_and_python, _torch(snapshot), _cupy(snapshot)]


def _system(system: System) -> list[str]:
    parts = [clean(system.distribution_label or _NAMES.get(system.os or "", "system unknown"), _LONGEST)]
    if system.wsl:
        parts.append(f"WSL {system.wsl}")
    if system.container:
        parts.append(f"{clean(system.container, _LONGEST)} container")
    return parts


def _python(python: Python | None) -> str:
    if python is None or python.version is None:
        return "Python unknown"
    parts = [python.environment, python.installer]
    if python.active_environment and python.active_environment == python.prefix:
        parts.append(f"activated: {python.prefix}")
    ways = ", ".join(dict.fromkeys(clean(part, _LONGEST) for part in parts if part))
    return f"Python {clean(str(python.version), _LONGEST)}" + (f" ({ways})" if ways else "")


def _driver(driver: Driver | None) -> str:
    if driver is not None and driver.version is not None:
        return f"driver {driver.version}"
    if driver is not None and driver.library_version is not None:
        return f"driver {driver.library_version}{', not loaded' if driver.module_loaded is False else ''}"
    return "driver none" if driver is not None and driver.installed is False else "driver unknown"


def _torch(snapshot: Snapshot) -> str:
    if snapshot.torch is not None and snapshot.torch.installed is False:
        return "torch none"
    versions = [section.version for section in (snapshot.torch_runtime, snapshot.torch) if section is not None]
    return f"torch {clean(str(next((version for version in versions if version), 'unknown')), _LONGEST)}"


def _cupy(snapshot: Snapshot) -> str:
    if snapshot.cupy is not None and snapshot.cupy.distributions is not None:
        return (
            ", ".join(clean(f"{p.name} {p.version}", _LONGEST) for p in snapshot.cupy.distributions[:4]) or "CuPy none"
        )
    versions = [section.version for section in (snapshot.cupy_runtime, snapshot.cupy) if section is not None]
    return f"CuPy {clean(str(next((version for version in versions if version), 'unknown')), _LONGEST)}"
