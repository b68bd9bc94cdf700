"""Xid errors of the driver."""

import functools
import re
from collections.abc import Mapping
from dataclasses import replace

from gpudoctor.data.tables import records
from gpudoctor.model.machine import Xid
from gpudoctor.model.record import record

# Immediate actions of NVIDIA's catalogue after which the device is not used before a reset; after RESTART_BM no reset
# helps.
RESET_ACTIONS = ("RESET_GPU", "RESTART_VM", "WORKFLOW_XID_48", "WORKFLOW_NVLINK_ERR", "WORKFLOW_NVLINK5_ERR")
# Uncorrectable errors in memory that come with Xid 48, and a PCIe timeout: the catalogue names no action for them.
FATAL = (167, 171, 172)
# Faults of memory, power or a link that the driver survives: row remapping, power not connected, many corrected errors,
# a contained memory error, the chip-to-chip link, less memory than there was.
LASTING = (54, 63, 92, 94, 121, 157, 168)
TESTS = (106, 107)
CHANNEL_ENDED = 45  # names in newer drivers the error for which: "Ch 00000001 caused by previous Xid 149"
RECOVERY_ACTION = 154  # "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)"


@record
class XidMeaning:
    """What NVIDIA's catalogue says about one Xid.

    action: what to do at once, in NVIDIA's vocabulary: "RESTART_APP", "RESET_GPU", ...
    investigation: what to do when it comes again.
    """

    xid: int
    mnemonic: str
    description: str
    action: str
    investigation: str


def xid_meaning(number: int) -> XidMeaning | None:
    """Return what an Xid means; None if the catalogue has none."""
    return _xids().get(number)


def xid_label(number: int) -> str:
    """Return an Xid with its meaning: "Xid 48 (Double Bit ECC Error)"."""
    meaning = xid_meaning(number)
    return f"Xid {number} ({meaning.description if meaning is not None else 'not in the catalogue'})"


def xid_cause(xid: Xid) -> Xid:
    """Return the error that this one names as its cause; itself if it names none."""
    named = re.search(r"previous Xid (\d{1,3})\b", xid.text) if xid.number == CHANNEL_ENDED else None
    return replace(xid, number=int(named[1])) if named else xid


def xid_effect(xid: Xid) -> str:
    """Return what an Xid means for its device.

    "lost": only a restart helps. "reset": not used before a reset. "lasting": a fault that the driver survives. "test":
    nothing happened. "program": the catalogue calls it a fault of a program, or does not have it.
    """
    meaning = xid_meaning(xid.number)
    action = meaning.action if meaning is not None else ""
    if action == "RESTART_BM":
        return "lost"
    required = xid.number == RECOVERY_ACTION and "required" in xid.text.lower().rpartition(" to ")[2]
    if action in RESET_ACTIONS or xid.number in FATAL or required:
        return "reset"
    if xid.number in LASTING or action == "CHECK_MECHANICALS":
        return "lasting"
    return "test" if xid.number in TESTS else "program"


@functools.cache
def _xids() -> Mapping[int, XidMeaning]:
    return {row.xid: row for row in records(XidMeaning, "xids", "xids")}
