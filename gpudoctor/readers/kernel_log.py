"""Kernel log lines about NVIDIA GPUs, from dmesg or journalctl."""

import re
from collections.abc import Iterator

from gpudoctor.model import Driver, System, Xid
from gpudoctor.parsers.linux import driver_messages, parse_xids
from gpudoctor.probes.driver import MOST_MESSAGES, MOST_XIDS
from gpudoctor.readers.facts import Facts
from gpudoctor.readers.text import Text, regex

MOST_LINES = 50_000
MOST_WRAPPED = 200  # messages whose line breaks differ from the log's
LONGEST = 300

# dmesg's time in either format, the system log's host and "kernel:", or the driver's own prefix
_LOGGED = regex(
    r"^\s*(?:<\d+>)?\[\s*(?:\d{1,9}\.\d{3,6}|\w{3} \w{3} +\d[\d: ]{6,20})\]|\bkernel: |\bNVRM: |\bXid \(PCI:"
)
_TIME = r"\[ ?\d{1,9}\.\d{3,6}\]"
_OF_GPU = regex(r"(?i)\bnvidia|\bnouveau|\bNVRM\b|\bS?Xid\b", "nvidia|nouveau|nvrm|xid")
# "Xid 79", "XID error 48", "Xid code: 62": how people quote their log
_NAMED = regex(r"(?i)\bxid(?:s| error| code| errors| message| number)?(?: value)?(?:[ :=#]|of){1,3}(\d{1,3})\b(?!\.\d)")


def read(text: Text) -> Facts:
    """Return the Xid errors and the last messages of the driver."""
    lines = [line for line in text.lines[:MOST_LINES] if _OF_GPU.search(line) and _LOGGED.search(line)]
    xids = max(parse_xids(lines), parse_xids(_wrapped(text)), key=len) or tuple(_named(text))
    messages = driver_messages(lines, MOST_MESSAGES)
    if not xids and not messages:
        return {}
    driver = Driver(xids=tuple(dict.fromkeys(xids))[-MOST_XIDS:] or None, kernel_messages=messages or None)
    return {"driver": driver, "system": System(os="linux")} if lines else {"driver": driver}


def _wrapped(text: Text) -> Iterator[str]:
    """Yield the text from each driver prefix on, if lines were broken or joined."""
    if "xid (" in text.lowered:
        parts = re.split(r"NVRM: (?=Xid \()", text.flat)[1:MOST_WRAPPED]
        yield from (f"NVRM: {re.split(_TIME, part[:LONGEST])[0]}" for part in parts)


def _named(text: Text) -> Iterator[Xid]:
    if "xid" in text.lowered:
        yield from (Xid(number=int(match[1])) for match in list(_NAMED.finditer(text.flat))[:20])
