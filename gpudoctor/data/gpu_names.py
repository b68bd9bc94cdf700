"""Compute capabilities of products, for reports of machines whose driver did not answer."""

import functools
import re
from collections.abc import Mapping

from gpudoctor.data.tables import load_table
from gpudoctor.model.machine import Device
from gpudoctor.model.versions import ComputeCapability

# Form factor, memory and instance at the end of a name: "A100-SXM4-40GB", "GTX 1060 6GB", "H100 80GB HBM3 MIG 1g.10gb",
# and the type of a vGPU: "L40S-48C", "GRID T4-16Q".
_SUFFIX = (
    r" (?:(?:sxm|pcie|nvl|hbm)\d*e?|\d+ ?gb?|with max q design|laptop gpu|(?:mig )?\dg\.\d+gb|mig|lc|\d{1,3}[abcq]\d?)$"
)
# Words that do not distinguish products; the last one is from a Jetson: "Orin (nvgpu)".
_OF_ALL = ("nvidia", "geforce", "tesla", "quadro", "corporation", "grid", "nvgpu")


def capability_of(name: str | None = None, pci_device_id: str | None = None) -> ComputeCapability | None:
    """Return the compute capability of a product by its name or PCI device id; None if the table does not know.

    name: as NVML or a report prints it; "NVIDIA", "GeForce", "Tesla" and a form factor may be there or not.
    pci_device_id: four hex digits, such as "2684"; it wins over the name.
    """
    if pci_device_id:
        number = pci_device_id.removeprefix("0x").upper()
        families = (number[:digits] for digits in (4, 3, 2) if len(number) == 4)
        found = _by_pci_id().get(number) or next(filter(None, map(_by_pci_family().get, families)), None)
        if found is not None:
            return found
    return _by_name(name) if name else None


def _by_name(name: str) -> ComputeCapability | None:
    whole = plain = _plain(name.rstrip(".… "))
    while plain not in _names() and plain != (shorter := re.sub(_SUFFIX, "", plain)):
        plain = shorter
    if plain in _names() or not name.endswith(("...", "…")) or not re.search(r"\d", whole):
        return _names().get(plain)
    # nvidia-smi prints "GeForce RTX 208..." for long names: what all products have whose name begins so
    found = {capability for product, capability in _names().items() if product.startswith(whole)}
    return found.pop() if len(found) == 1 else None


def _plain(name: str) -> str:
    words = re.sub(r"[-_\s()\[\]]+", " ", name.casefold()).strip().split(" ")
    return " ".join(word for word in words if word not in _OF_ALL)


@functools.cache
def _names() -> Mapping[str, ComputeCapability]:
    rows = load_table("gpu_names")["gpus"]
    return {_plain(row["name"]): ComputeCapability.parse(row["capability"]) for row in rows}


@functools.cache
def _by_pci_id() -> Mapping[str, ComputeCapability]:
    rows = load_table("gpu_names")["gpus"]
    return {number: ComputeCapability.parse(row["capability"]) for row in rows for number in row.get("pci", ())}


@functools.cache
def _by_pci_family() -> Mapping[str, ComputeCapability]:
    rows = load_table("gpu_names")["pci_families"]
    return {row["prefix"]: ComputeCapability.parse(row["capability"]) for row in rows}


def device_capability(device: Device) -> ComputeCapability | None:
    """Return the compute capability, by the product if the driver does not say; None if it is unknown."""
    return device.compute_capability or capability_of(device.name, device.pci_device_id)
