"""The CPU use of a program and of what it started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from gpudoctor.watching.sampler import CpuUse

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
BUSY = [sys.executable, "-c", "while True: pass"]
IN_A_CHILD = [sys.executable, "-c", f"import subprocess; subprocess.run({BUSY})"]


@contextmanager
def running(command: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(command, start_new_session=True)
    try:
        yield process
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def cores_of(process: subprocess.Popen[bytes], seconds: float = 0.5) -> float | None:
    use = CpuUse(process.pid)
    time.sleep(0.3)  # the interpreter starts
    assert use.look()
    assert use.cores is None
    time.sleep(seconds)
    assert use.look()
    return use.cores


@pytest.mark.parametrize("command", [BUSY, IN_A_CHILD], ids=["itself", "in a child"])
def test_a_busy_program(command: list[str]) -> None:
    with running(command) as process:
        cores = cores_of(process)
    assert cores is not None
    assert 0.1 < cores < 1.5  # others may want the machine too


def test_a_waiting_program() -> None:
    with running(["sleep", "60"]) as process:
        assert cores_of(process) == pytest.approx(0, abs=0.1)


def test_a_stopped_program_is_not_looked_at() -> None:
    with running(BUSY) as process:
        os.kill(process.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED)
        use = CpuUse(process.pid)
        assert not use.look()
        os.kill(process.pid, signal.SIGCONT)
        os.waitid(os.P_PID, process.pid, os.WCONTINUED)
        assert use.look()


def test_a_program_that_has_ended_has_no_use() -> None:
    done = subprocess.Popen(["true"])
    done.wait()
    use = CpuUse(done.pid)
    assert use.look()
    assert use.cores is None


@pytest.mark.parametrize("error", [OSError(), AttributeError(), ValueError("unrecognized configuration name")])
def test_without_clock_ticks_nothing_is_known(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def sysconf(name: str) -> int:
        raise error

    monkeypatch.setattr(os, "sysconf", sysconf)
    use = CpuUse(os.getpid())
    assert use.look()
    assert use.cores is None
