"""Lines of the driver as dmesg, journalctl and the system log print them."""

from __future__ import annotations

import pytest

from gpudoctor.model import Xid
from gpudoctor.parsers.kernel_log import driver_messages, parse_xids

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
