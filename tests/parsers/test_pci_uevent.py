"""What the kernel tells of PCI devices."""

from __future__ import annotations

import pytest

from gpudoctor.parsers.pci_uevent import BRIDGE, DISPLAY, PciDevice, parse_pci_uevent

RTX_4090 = """DRIVER=nvidia
PCI_CLASS=30000
PCI_ID=10DE:2684
PCI_SUBSYS_ID=1043:889D
PCI_SLOT_NAME=0000:01:00.0
MODALIAS=pci:v000010DEd00002684sv00001043sd0000889Dbc03sc00i00
"""


def test_graphics_card() -> None:
    device = parse_pci_uevent(RTX_4090)
    assert device == PciDevice(address="0000:01:00.0", kind=0x0300, vendor="10DE", device="2684", driver="nvidia")
    assert device.kind in DISPLAY


def test_device_without_a_driver() -> None:
    text = "PCI_CLASS=68000\nPCI_ID=10DE:22A3\nPCI_SLOT_NAME=0000:05:00.0\n"
    device = parse_pci_uevent(text)
    assert (device.kind, device.driver) == (BRIDGE, "")


@pytest.mark.parametrize(
    "text",
    ["", "PCI_CLASS=30000\n", RTX_4090.replace("10DE:2684", "10DE"), RTX_4090.replace("=30000", "=vga")],
)
def test_another_text(text: str) -> None:
    with pytest.raises(ValueError, match="not the uevent of a PCI device"):
        parse_pci_uevent(text)
