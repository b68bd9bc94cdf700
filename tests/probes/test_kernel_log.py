"""The kernel log: the worker that reads it, and the facts in its lines."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gpudoctor.model import Driver, Xid
from gpudoctor.probes.driver import MOST_MESSAGES, MOST_XIDS, parse_kernel_log
from gpudoctor.probes.host import ProbeContext
from gpudoctor.probes.workers.read_kernel_log import MOST_LINES, collect, read_kernel_log
from tests.probes.asked import asked

XID_79 = "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus."
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the log of Linux")


def command(output: str, status: int = 0) -> list[str]:
    return [sys.executable, "-c", f"import sys; print({output!r}); sys.exit({status})"]


def test_record_of_the_device(tmp_path: Path) -> None:
    """A plain file gives one record: a read of the device gives one, too."""
    device = tmp_path / "kmsg"
    device.write_text(f"4,1234,8123456789,-;{XID_79}\n SUBSYSTEM=pci\n", encoding="utf-8")
    assert read_kernel_log(str(device), []) == {"source": str(device), "lines": [f"[ 8123.456789] {XID_79}"]}


def test_other_lines_are_not_kept(tmp_path: Path) -> None:
    device = tmp_path / "kmsg"
    device.write_text("6,1,5,-;usb 1-1: Product: someone's phone\n", encoding="utf-8")
    assert read_kernel_log(str(device), []) == {"source": str(device), "lines": []}


def test_a_device_that_gives_nothing_does_not_block(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert read_kernel_log(str(pipe), []) == {"error": f"{pipe}: empty"}


def test_commands_if_the_device_is_refused() -> None:
    log = f"[    1.0] usb 1-1: new device\n[    2.0] {XID_79}"
    refused = command("dmesg: read kernel buffer failed: Operation not permitted", status=1)
    answer = read_kernel_log("/none", [["no-such-command"], refused, command(""), command(log)])
    assert answer == {"source": sys.executable, "lines": [f"[    2.0] {XID_79}"]}


def test_nobody_may_read_it() -> None:
    answer = read_kernel_log("/none", [["no-such-command"], command("", status=1)])
    assert answer == {"error": "[Errno 2] No such file or directory: '/none'"}


def test_the_newest_lines_are_kept() -> None:
    log = "\n".join(f"NVRM: {number}" for number in range(MOST_LINES + 1))
    lines = read_kernel_log("/none", [command(log)])["lines"]
    assert (len(lines), lines[-1]) == (MOST_LINES, f"NVRM: {MOST_LINES}")


def test_dmesg_is_asked_and_then_the_journal(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def run(argv: list[str], **_: object) -> subprocess.CompletedProcess[bytes]:
        asked.append(" ".join(argv))
        return subprocess.CompletedProcess(argv, 0, b"", b"")

    monkeypatch.setattr(subprocess, "run", run)
    assert collect({"device": "/none"}) == {"kernel_log": {"error": "[Errno 2] No such file or directory: '/none'"}}
    journal = "journalctl --dmesg --boot --quiet --no-pager --output=cat --lines=20000"
    assert asked == ["dmesg", journal]


@pytest.mark.parametrize(
    ("record", "lines"),
    [
        ("4,1,8000000,-;NVRM: x", ["[    8.000000] NVRM: x"]),
        ("4,1,8000000,-;gpu: Xid 79", ["[    8.000000] gpu: Xid 79"]),
        ("4,1,8000000,-;module Nvidia_uvm: x", ["[    8.000000] module Nvidia_uvm: x"]),
        ("4,1,8000000;NVRM: x", ["[    8.000000] NVRM: x"]),
        ("4,1;NVRM: x", ["NVRM: x"]),
        ("4,1,now,-;NVRM: x", ["NVRM: x"]),
        ("4,1,5,-;usb 1-1: new device\n DRIVER=nvidia", []),
    ],
)
def test_a_line_of_the_driver(record: str, lines: list[str], tmp_path: Path) -> None:
    (tmp_path / "kmsg").write_text(record, encoding="utf-8")
    assert read_kernel_log(str(tmp_path / "kmsg"), [])["lines"] == lines


def test_question() -> None:
    question = asked("kernel-log", ProbeContext(environ={}, directory=Path()))
    assert (question.name, question.worker) == ("kernel-log", "read_kernel_log")


def test_facts() -> None:
    driver = parse_kernel_log({"kernel_log": {"source": "dmesg", "lines": [f"[ 1.0] {XID_79}"]}})
    xid = Xid(number=79, pci_address="0000:3b:00.0", text="GPU has fallen off the bus.")
    assert driver == Driver(xids=(xid,), kernel_messages=(XID_79,))


def test_a_quiet_log_has_no_errors() -> None:
    assert parse_kernel_log({"kernel_log": {"source": "dmesg", "lines": []}}) == Driver(xids=(), kernel_messages=())


@pytest.mark.parametrize("facts", [{"kernel_log": {"error": "/dev/kmsg: EPERM Operation not permitted"}}, {}])
def test_a_log_that_is_not_readable_is_unknown(facts: dict[str, dict[str, str]]) -> None:
    assert parse_kernel_log(facts) == Driver()


def test_the_last_ones() -> None:
    lines = [f"NVRM: Xid (PCI:0000:3b:00): {number}, x" for number in range(100)]
    driver = parse_kernel_log({"kernel_log": {"lines": lines}})
    assert driver.xids is not None
    assert driver.kernel_messages is not None
    assert (len(driver.xids), driver.xids[-1].number, len(driver.kernel_messages)) == (MOST_XIDS, 99, MOST_MESSAGES)


def test_control_characters_do_not_reach_a_terminal() -> None:
    line = "NVRM: Xid (PCI:0000:3b:00): 31, pid=7, name=\x1b[31mevil\x07"
    driver = parse_kernel_log({"kernel_log": {"lines": [line]}})
    assert driver.xids == (Xid(number=31, pci_address="0000:3b:00.0", text="pid=7, name=[31mevil"),)
    assert driver.kernel_messages == ("NVRM: Xid (PCI:0000:3b:00): 31, pid=7, name=[31mevil",)
