"""Lines of the NVIDIA driver in the kernel log, as dmesg or journalctl prints them."""

from __future__ import annotations

import re
from collections.abc import Iterable

from gpudoctor.model import Xid

# "NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
# "NVRM: Xid (0000:01:00): 31, Ch 00000010, engmask 00000101, intr 10000000" before driver 410
_XID = (
    r"NVRM: Xid \((?:PCI:)?([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2})(?:\.[0-7])?\): (\d{1,4})(?!\d)[,:]?\s*(.*)"
)
# what stands before a message: dmesg's time of either kind, the date, host and "kernel:" of the system log
_PREFIX = r"^(?:<\d+>)?(?:.*?\bkernel: )?\s*(?:\[[^\]]*\]\s*)*"
_MESSAGE = r"NVRM|\bS?Xid\b|\bnvidia"
_PRIVATE = r"(?i)serial number"


def parse_xids(lines: Iterable[str]) -> tuple[Xid, ...]:
    """Return the Xid errors that the lines report, in their order."""
    matches = (re.search(_XID, line) for line in lines)
    return tuple(
        Xid(number=int(match[2]), pci_address=_address(match[1]), text=match[3].strip()) for match in matches if match
    )


def driver_messages(lines: Iterable[str], limit: int) -> tuple[str, ...]:
    """Return the last messages of the driver, without the time; a message that repeats at once is given once."""
    messages: list[str] = []
    for line in lines:
        if re.search(_MESSAGE, line, re.IGNORECASE) is None or re.search(_PRIVATE, line):
            continue
        message = re.sub(_PREFIX, "", line, count=1).strip()
        if message and (not messages or messages[-1] != message):
            messages.append(message)
    return tuple(messages[-limit:])


def _address(text: str) -> str:
    """Return the address as sysfs writes it: "0000:3b:00.0". A GPU is function 0 of its device."""
    domain, bus, device = text.lower().split(":")
    return f"{domain[-4:]}:{bus}:{device}.0"
