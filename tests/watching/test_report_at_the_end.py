"""The report is written whatever ends first: the program, the terminal, or the process that takes samples."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not Path("/proc/self").exists(), reason="finds processes in /proc")

LONG = "import pathlib, time; pathlib.Path('begun').touch(); time.sleep(60)"
PATIENCE = 60.0
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


@pytest.fixture(autouse=True)
def default_signals() -> Iterator[None]:
    """Let the programs inherit no ignored signal: tests under nohup ignore SIGHUP, those in the background SIGINT."""
    before = {number: signal.signal(number, signal.SIG_DFL) for number in SIGNALS if _is_ignored(number)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def _is_ignored(number: int) -> bool:
    return signal.getsignal(number) is signal.SIG_IGN


def start(folder: Path, stderr: int) -> subprocess.Popen[bytes]:
    """Start a long program under gpudoctor run, and wait until it runs."""
    command = [sys.executable, "-m", "gpudoctor", "run", "--every", "0.1", "--output", "report.txt", "--"]
    doctor = subprocess.Popen([*command, sys.executable, "-c", LONG], cwd=folder, stderr=stderr, start_new_session=True)
    deadline = time.monotonic() + PATIENCE
    while not (folder / "begun").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    return doctor


def children_of(pid: int) -> dict[int, str]:
    """Return the processes that a process started, with their command lines."""
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return {int(child): Path(f"/proc/{child}/cmdline").read_text() for child in found}


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_ends_the_program_and_the_report_is_written(number: int, tmp_path: Path) -> None:
    doctor = start(tmp_path, subprocess.DEVNULL)
    doctor.send_signal(number)
    assert doctor.wait(PATIENCE) in {1, 128 + number}  # Python ends with 1 or by the signal after a KeyboardInterrupt
    assert "ended with exit status" in (tmp_path / "report.txt").read_text()


def test_the_process_that_takes_samples_is_killed(tmp_path: Path) -> None:
    doctor = start(tmp_path, subprocess.DEVNULL)
    (sampler,) = (pid for pid, command in children_of(doctor.pid).items() if "sampler" in command)
    os.kill(sampler, signal.SIGKILL)
    doctor.send_signal(signal.SIGTERM)
    assert doctor.wait(PATIENCE) == 128 + signal.SIGTERM
    assert "ended with exit status 143" in (tmp_path / "report.txt").read_text()


def test_nobody_reads_standard_error_any_longer(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    doctor = start(tmp_path, writer)
    os.close(writer)
    os.close(reader)
    doctor.send_signal(signal.SIGTERM)
    assert doctor.wait(PATIENCE) == 128 + signal.SIGTERM
    assert "ended with exit status 143" in (tmp_path / "report.txt").read_text()
