"""What follows from the facts of a report and stands in none of its texts."""

from __future__ import annotations

from dataclasses import replace

from gpudoctor.data import capability_of
from gpudoctor.model import CudaVersion, Device, Driver, Torch
from gpudoctor.readers.facts import Facts, joined


def concluded(facts: Facts) -> tuple[Facts, Facts]:
    """Return the facts with what follows from them, and that alone."""
    conclusions = {**_torch(facts.get("torch")), **_driver(facts.get("driver"))}
    result = joined(facts, conclusions)
    if result.get("devices"):
        result["devices"] = tuple(_device(device) for device in result["devices"])
    return result, conclusions


def _torch(torch: Torch | None) -> Facts:
    """Return what the local part of PyTorch's version tells: "cpu", "cu118", "rocm6.0"."""
    if torch is None or torch.version is None:
        return {}
    local = torch.version.local
    build = "cpu" if local.startswith("cpu") else "cuda" if local.startswith("cu") else None
    build = "rocm" if local.startswith("rocm") else build
    digits = local.removeprefix("cu")
    cuda = (
        CudaVersion(int(digits[:-1]), int(digits[-1]))
        if build == "cuda" and digits[:4].isdigit() and len(digits) > 1
        else None
    )
    return {"torch": Torch(installed=True, build=build, cuda_version=cuda)}


def _driver(driver: Driver | None) -> Facts:
    """Return that a driver is there where its version is known."""
    if driver is not None and driver.installed is None and driver.version is not None:
        return {"driver": Driver(installed=True)}
    return {}


def _device(device: Device) -> Device:
    """Return the device with its compute capability, by the name of the product."""
    if device.compute_capability is not None:
        return device
    return replace(device, compute_capability=capability_of(device.name, device.pci_device_id))
