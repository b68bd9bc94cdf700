"""What the NVIDIA driver wrote to the kernel log since the machine was started."""

from __future__ import annotations

from gpudoctor.model import Driver
from gpudoctor.parsers.linux import driver_messages, parse_xids
from gpudoctor.probes.host import READING, ProbeContext, Question
from gpudoctor.probes.reading import Facts
from gpudoctor.untrusted import cleaned

XIDS = 50
MESSAGES = 20


def question(setting: ProbeContext) -> Question:  # noqa: ARG001 - the same everywhere
    """Return what to read for the part of the section."""
    return Question(name="kernel-log", worker="read_kernel_log", shares=READING)


def parse_kernel_log(facts: Facts) -> Driver:
    """Return the last Xid errors and messages; unknown where the log may not be read."""
    lines = facts.get("kernel_log", {}).get("lines")
    if lines is None:
        return Driver()
    lines = [cleaned(line) for line in lines]
    return Driver(xids=parse_xids(lines)[-XIDS:], kernel_messages=driver_messages(lines, MESSAGES))
