"""What Linux says of itself, of the NVIDIA driver and of GPUs: files of /etc, /proc and /sys, and the kernel log.

Each parser of a file raises `ValueError` for another text.
"""

import re
from collections.abc import Iterable

from gpudoctor.model import Xid
from gpudoctor.model.record import record
from gpudoctor.model.versions import DriverVersion
from gpudoctor.parsers import required

_ASSIGNMENT = r"([A-Za-z_][A-Za-z0-9_]*)=(.*)"


def parse_os_release(text: str) -> dict[str, str]:
    """Return the variables of /etc/os-release, without their quotes."""
    matches = (re.fullmatch(_ASSIGNMENT, line.strip()) for line in text.splitlines())
    variables = {match[1]: _unquote(match[2]) for match in matches if match}
    if not variables:
        raise ValueError(f"not an os-release file: {text[:200]!r}")
    return variables


def _unquote(value: str) -> str:
    if len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'":
        value = value[1:-1]
    return re.sub(r"\\(.)", r"\1", value)


# "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.129.03  Thu Oct 19 18:56:32 UTC 2023"
# "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  565.57.01  Release Build  (builder@host)  Thu Oct 10 ..."
_LINE = r"NVRM version:.*?Kernel Module(?:\s+for\s+\S+)?\s+(\d+(?:\.\d+)+)"


@record
class KernelModule:
    """The loaded kernel module. flavor: "open" or "proprietary"."""

    version: DriverVersion
    flavor: str


def parse_proc_driver_version(text: str) -> KernelModule:
    """Return the kernel module that /proc/driver/nvidia/version describes."""
    match = required(_LINE, text, "no version of the NVIDIA kernel module")
    flavor = "open" if "Open Kernel Module" in match[0] else "proprietary"
    return KernelModule(version=DriverVersion.parse(match[1]), flavor=flavor)


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
    """Return the device that the file uevent in sysfs describes: PCI_CLASS, PCI_ID, PCI_SLOT_NAME and DRIVER."""
    variables = {name: value for name, _, value in (line.partition("=") for line in text.splitlines())}
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


def parse_gfx_target(text: str) -> str:
    """Return the gfx target of a node's properties, "gfx90a" of "gfx_target_version 90010"; "" if it is not a GPU.

    Source: /sys/class/kfd/kfd/topology/nodes/*/properties of AMD's compute driver.
    """
    number = int(required(r"^gfx_target_version (\d{1,7})$", text, "no gfx_target_version", re.MULTILINE)[1])
    if number == 0:
        return ""
    major, minor, stepping = number // 10000, number // 100 % 100, number % 100
    return f"gfx{major}{minor:x}{stepping:x}"


# "NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
# "NVRM: Xid (0000:01:00): 31, Ch 00000010, engmask 00000101, intr 10000000" before driver 410
_XID = (
    r"NVRM: Xid \((?:PCI:)?([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2})(?:\.[0-7])?\): (\d{1,4})(?!\d)[,:]?\s*(.*)"
)
# the text before a message: dmesg's time of either kind, the date, host and "kernel:" of the system log
_PREFIX = r"^(?:<\d+>)?(?:.*?\bkernel: )?\s*(?:\[[^\]]*\]\s*)*"
_MESSAGE = r"NVRM|\bS?Xid\b|\bnvidia"
_PRIVATE = r"(?i)serial number"


def parse_xids(lines: Iterable[str]) -> tuple[Xid, ...]:
    """Return the Xid errors in the lines, in order."""
    matches = (re.search(_XID, line) for line in lines)
    return tuple(
        Xid(number=int(match[2]), pci_address=_address(match[1]), text=match[3].strip()) for match in matches if match
    )


def driver_messages(lines: Iterable[str], limit: int) -> tuple[str, ...]:
    """Return the last driver messages, without times and without repetitions in a row."""
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
