"""The CPU use of a program and of what it started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gpudoctor.watching.sampler import CpuUse
from gpudoctor.watching.samples import Watch
from gpudoctor.watching.watcher import Watcher
from tests.conftest import Install
from tests.stand_ins import MISSING_IN_R450, RTX_4090, Gpu, Nvml

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


MIB = 2**20


@pytest.fixture
def watch(driver_stand_in: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Nvml], Watch]:
    """Return a function that watches this process on the devices until there is a sample."""
    pytest.importorskip("pynvml")

    def watch(nvml: Nvml) -> Watch:
        for name, value in driver_stand_in(tmp_path, nvml=nvml).items():
            monkeypatch.setenv(name, value)
        watcher = Watcher(os.getpid(), 0.01)
        end = time.monotonic() + 20
        while not watcher._samples.all() and time.monotonic() < end and not watcher._watch.problem.startswith("N"):
            time.sleep(0.05)
        return watcher.end()

    return watch


@pytest.mark.parametrize(
    ("missing", "used_mib"), [((), 2000), (MISSING_IN_R450, 2346)], ids=["today's NVML", "NVML of R450"]
)
def test_what_is_watched(missing: tuple[str, ...], used_mib: int, watch: Callable[[Nvml], Watch]) -> None:
    gpu = RTX_4090.but(memory_used=2000 * MIB, utilization=97)
    seen = watch(Nvml(devices=(gpu,), missing=missing))
    (device,) = seen.devices
    assert (device.nvml_index, device.name, device.power_limit_watts) == (0, "NVIDIA GeForce RTX 4090", 450.0)
    assert (device.memory_total_bytes, device.clock_max_mhz) == (24564 * MIB, 3120)
    (sample,) = seen.samples[0].devices
    assert (sample.utilization_percent, sample.temperature_celsius, sample.power_watts) == (97, 34, 21.34)
    assert sample.memory_used_bytes == used_mib * MIB  # the first version counts what the driver reserves


def test_a_device_that_cannot_be_opened_is_left_out(watch: Callable[[Nvml], Watch]) -> None:
    lost: Gpu = RTX_4090.but(fail={"nvmlDeviceGetHandleByIndex": 15})
    assert [device.nvml_index for device in watch(Nvml(devices=(lost, RTX_4090))).devices] == [1]
    assert watch(Nvml(devices=(lost,))).problem == "NVML reports no usable GPU"
