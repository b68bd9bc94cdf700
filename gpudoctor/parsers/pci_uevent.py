"""The file uevent of a PCI device in sysfs."""

from __future__ import annotations

import re

from gpudoctor.model.record import record

DISPLAY = (0x0300, 0x0302, 0x0380)  # VGA controller, 3D controller, other display controller
ACCELERATOR = 0x1200  # processing accelerator: AMD Instinct
BRIDGE = 0x0680  # other bridge: NVSwitch


@record
class PciDevice:
    """A device on the PCI bus. kind: class and subclass; vendor and device: four upper-case hex digits."""

    address: str
    kind: int
    vendor: str
    device: str
    driver: str


def parse_pci_uevent(text: str) -> PciDevice:
    """Return the device that the lines PCI_CLASS, PCI_ID, PCI_SLOT_NAME and DRIVER describe.

    Raises:
        ValueError: one of the first three is missing or no number.
    """
    variables = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    kind, number, address = (variables.get(name, "") for name in ("PCI_CLASS", "PCI_ID", "PCI_SLOT_NAME"))
    match = re.fullmatch(r"([0-9A-Fa-f]{4}):([0-9A-Fa-f]{4})", number)
    if match is None or not address or re.fullmatch(r"[0-9A-Fa-f]{1,6}", kind) is None:
        raise ValueError(f"not the uevent of a PCI device: {text[:200]!r}")
    return PciDevice(
        address=address,
        kind=int(kind, 16) >> 8,
        vendor=match[1].upper(),
        device=match[2].upper(),
        driver=variables.get("DRIVER", ""),
    )
