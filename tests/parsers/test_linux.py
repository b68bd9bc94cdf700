"""Files of /etc, /proc and /sys, and the kernel log."""

from __future__ import annotations

import pytest

from gpudoctor.model import Xid
from gpudoctor.parsers.linux import (
    ACCELERATOR,
    BRIDGE,
    DISPLAY,
    PciDevice,
    driver_messages,
    parse_gfx_target,
    parse_os_release,
    parse_pci_uevent,
    parse_proc_driver_version,
    parse_xids,
)

UBUNTU = """PRETTY_NAME="Ubuntu 24.04.1 LTS"
NAME="Ubuntu"
VERSION_ID="24.04"
ID=ubuntu
ID_LIKE=debian
"""
FEDORA = """NAME="Fedora Linux"
VERSION="41 (Workstation Edition)"
ID=fedora
VERSION_ID=41
PRETTY_NAME="Fedora Linux 41 (Workstation Edition)"
"""
ARCH = """NAME="Arch Linux"
PRETTY_NAME="Arch Linux"
ID=arch
BUILD_ID=rolling
"""
ALPINE = "NAME='Alpine Linux'\nID=alpine\nVERSION_ID=3.20.3\nPRETTY_NAME='Alpine Linux v3.20'\n"
COMMENTED = '# comment\n\nID="rhel"\nVERSION_ID="9.4"\nPRETTY_NAME="Red \\"Hat\\" 9.4"\nbroken line\n'


@pytest.mark.parametrize(
    ("text", "distribution", "version", "name"),
    [
        pytest.param(UBUNTU, "ubuntu", "24.04", "Ubuntu 24.04.1 LTS", id="double quotes"),
        pytest.param(FEDORA, "fedora", "41", "Fedora Linux 41 (Workstation Edition)", id="no quotes"),
        pytest.param(ARCH, "arch", None, "Arch Linux", id="rolling, without a version"),
        pytest.param(ALPINE, "alpine", "3.20.3", "Alpine Linux v3.20", id="single quotes"),
        pytest.param(COMMENTED, "rhel", "9.4", 'Red "Hat" 9.4', id="comment, escapes and a line that is none"),
        pytest.param(UBUNTU.replace("\n", "\r\n"), "ubuntu", "24.04", "Ubuntu 24.04.1 LTS", id="ends of Windows"),
    ],
)
def test_distribution(text: str, distribution: str, version: str | None, name: str) -> None:
    variables = parse_os_release(text)
    assert (variables.get("ID"), variables.get("VERSION_ID"), variables.get("PRETTY_NAME")) == (
        distribution,
        version,
        name,
    )


@pytest.mark.parametrize("text", ["", "CentOS release 6.10 (Final)\n"])
def test_a_text_that_is_no_os_release(text: str) -> None:
    with pytest.raises(ValueError, match="not an os-release file"):
        parse_os_release(text)


PROPRIETARY = """NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.129.03  Thu Oct 19 18:56:32 UTC 2023
GCC version:  gcc version 12.3.0 (Ubuntu 12.3.0-1ubuntu1~22.04)
"""
OPEN = """NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release Build  (dvs-builder@U16-I2)  Fri
GCC version:  gcc version 13.3.0 (Ubuntu 13.3.0-6ubuntu2~24.04)
"""
JETSON = """NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  540.4.0  Release Build  (buildbrain@mobile)  Tue
GCC version:  collect2: error: ld returned 1 exit status
"""
OLD = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  390.157  Wed Oct 12 09:19:07 UTC 2022\n"
RUSSIAN_DATE = (
    "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  555.58  Release Build  (root@host)  \u0421\u0431 29\n"
)


@pytest.mark.parametrize(
    ("text", "version", "flavor"),
    [
        pytest.param(PROPRIETARY, "535.129.03", "proprietary", id="proprietary"),
        pytest.param(OPEN, "570.86.15", "open", id="open"),
        pytest.param(JETSON, "540.04.00", "open", id="Jetson"),
        pytest.param(OLD, "390.157", "proprietary", id="two numbers"),
        pytest.param(RUSSIAN_DATE, "555.58", "open", id="date in another language"),
    ],
)
def test_version_and_flavor(text: str, version: str, flavor: str) -> None:
    module = parse_proc_driver_version(text)
    assert (str(module.version), module.flavor) == (version, flavor)


@pytest.mark.parametrize("text", ["", "NVRM version: NVIDIA UNIX x86_64 Kernel Module\n", "GCC version:  gcc 12.3.0\n"])
def test_a_text_that_is_no_proc_driver_version(text: str) -> None:
    with pytest.raises(ValueError, match="no version of the NVIDIA kernel module"):
        parse_proc_driver_version(text)


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


@pytest.mark.parametrize(
    ("kind", "display"),
    [("30000", True), ("30200", True), ("38000", True), ("30100", False), ("28000", False), ("120000", False)],
)
def test_which_devices_have_a_display(kind: str, display: bool) -> None:
    found = parse_pci_uevent(RTX_4090.replace("PCI_CLASS=30000", f"PCI_CLASS={kind}"))
    assert (found.kind in DISPLAY, found.kind == ACCELERATOR) == (display, kind == "120000")


def test_device_without_a_driver() -> None:
    text = "PCI_CLASS=68000\nPCI_ID=10DE:22A3\nPCI_SLOT_NAME=0000:05:00.0\n"
    device = parse_pci_uevent(text)
    assert (device.kind, device.driver) == (BRIDGE, "")


@pytest.mark.parametrize(
    "text",
    ["", "PCI_CLASS=30000\n", RTX_4090.replace("10DE:2684", "10DE"), RTX_4090.replace("=30000", "=vga")],
)
def test_a_text_that_is_no_pci_uevent(text: str) -> None:
    with pytest.raises(ValueError, match="not the uevent of a PCI device"):
        parse_pci_uevent(text)


@pytest.mark.parametrize(
    ("number", "target"),
    [("110000", "gfx1100"), ("90010", "gfx90a"), ("90402", "gfx942"), ("100302", "gfx1032"), ("0", "")],
)
def test_target(number: str, target: str) -> None:
    assert parse_gfx_target(f"cpu_cores_count 0\ngfx_target_version {number}\nvendor_id 4098\n") == target


def test_a_text_that_is_no_gfx_target() -> None:
    with pytest.raises(ValueError, match="no gfx_target_version"):
        parse_gfx_target("cpu_cores_count 16\n")


FALLEN = "NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."


@pytest.mark.parametrize(
    ("line", "xid"),
    [
        pytest.param(
            f"[ 8123.456789] {FALLEN}",
            Xid(
                number=79,
                pci_address="0000:3b:00.0",
                text="pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
            ),
            id="dmesg",
        ),
        pytest.param(
            "[Tue Jan  7 10:11:12 2025] NVRM: Xid (0000:01:00): 31, Ch 00000010, engmask 00000101",
            Xid(number=31, pci_address="0000:01:00.0", text="Ch 00000010, engmask 00000101"),
            id="old driver, dmesg -T",
        ),
        pytest.param(
            "Jan 07 10:11:12 host kernel: NVRM: Xid (PCI:0008:C1:00): 48, pid=1234, name=python, An uncorrectable "
            "double bit error (DBE) has been detected",
            Xid(
                number=48,
                pci_address="0008:c1:00.0",
                text="pid=1234, name=python, An uncorrectable double bit error (DBE) has been detected",
            ),
            id="system log, domain 8",
        ),
        pytest.param(
            "NVRM: Xid (PCI:00000000:18:00.0): 119", Xid(number=119, pci_address="0000:18:00.0"), id="long address"
        ),
    ],
)
def test_xid(line: str, xid: Xid) -> None:
    assert parse_xids([line]) == (xid,)


@pytest.mark.parametrize(
    "line",
    [
        "nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 12028, Non-fatal, Link 32 egress non-posted PRIV error",
        "NVRM: GPU 0000:01:00.0: RmInitAdapter failed! (0x26:0x56:1474)",
        "python[7]: NVRM: Xid (PCI): 79",
        "",
    ],
)
def test_no_xid(line: str) -> None:
    assert parse_xids([line]) == ()


def test_messages_are_the_last_of_the_driver_without_their_time() -> None:
    lines = [
        "[    1.000000] usb 1-1: new high-speed USB device",
        "[    2.000000] nvidia: loading out-of-tree module taints kernel.",
        "[    3.000000] NVRM: GPU Board Serial Number: 0123456789",
        f"[    4.000000] {FALLEN}",
        f"[    5.000000] {FALLEN}",
        "Jan 07 10:11:12 host kernel: [    6.1] NVRM: API mismatch: the client has the version 550.54.14",
    ]
    assert driver_messages(lines, 10) == (
        "nvidia: loading out-of-tree module taints kernel.",
        FALLEN,
        "NVRM: API mismatch: the client has the version 550.54.14",
    )
    assert driver_messages(lines, 1) == ("NVRM: API mismatch: the client has the version 550.54.14",)
