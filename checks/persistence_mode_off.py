"""Persistence mode of the driver."""

from collections.abc import Iterator

from gpudoctor.model import Device, Finding, Fix, System, ranges
from gpudoctor.registry import check, known, reachable, settled, skip_unless

# A display server keeps the device open, so the driver stays initialised without persistence mode.
DISPLAY_SERVERS = ("xorg", "xwayland", "gnome-shell", "kwin", "sway", "hyprland", "weston", "mutter")


@check(family="device")
def persistence_mode_off(devices: tuple[Device, ...], system: System) -> Iterator[Finding]:
    """Persistence mode is off, so the driver shuts the device down when its last program ends.

    Why: the first CUDA call of every program then waits until the device is initialised again, and power limits are
    lost.
    Exception: a device with a display server stays initialised anyway. Windows and WSL have no such mode. A container
    uses the setting of its host.
    Reference: https://docs.nvidia.com/deploy/driver-persistence/index.html
    """
    skip_unless(known(system.os, "system.os") == "linux", f"{system.os} has no persistence mode")
    skip_unless(not system.wsl, "WSL has no persistence mode")
    skip_unless(not system.container, "the host of a container sets the persistence mode")
    answering = reachable(devices)
    off = [(path, d) for path, d in answering if d.persistence_enabled is False and not _drives_display(d)]
    yield from settled((_finding(off) for _ in off[:1]), answering, "persistence_enabled")


def _finding(off: list[tuple[str, Device]]) -> Finding:
    devices = [device for _, device in off]
    subject = devices[0].label if len(devices) == 1 else f"GPUs {ranges(d.nvml_index for d in devices)}"
    facts = (f"{path}.persistence_enabled" for path, _ in off)
    return Finding.advice(subject, f"Persistence mode is off on {subject}", facts, Fix("turn-on-persistence-mode"))


def _drives_display(device: Device) -> bool:
    names = (process.name.lower() for process in device.processes or ())
    return any(server in name for name in names for server in DISPLAY_SERVERS)
