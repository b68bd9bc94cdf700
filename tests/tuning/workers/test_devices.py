"""The clock and the memory of the host."""

from __future__ import annotations

import subprocess
import sys
import time
from types import SimpleNamespace
from typing import Any

import pytest

from gpudoctor.model.tuning import Conditions
from gpudoctor.tuning.workers import devices
from gpudoctor.tuning.workers.devices import host_memory, timed_one_by_one

MIB = 2**20
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


@LINUX
def test_the_peak_is_that_of_this_trial() -> None:
    """In a process of its own: what other tests have left would be freed meanwhile."""
    program = (
        "from gpudoctor.tuning.workers.devices import Host\n"
        "host = Host()\n"
        "host.begin()\n"
        "block = bytearray(b'x') * (64 * 2**20)\n"
        "del block\n"
        "first = host.memory_use().peak_bytes\n"
        "host.begin()\n"
        "print(first, host.memory_use().peak_bytes)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    if "None" in done.stdout:
        pytest.skip("this kernel does not reset the peak")
    first, second = map(int, done.stdout.split())
    assert first > 60 * MIB  # the kernel counts in batches
    assert second < 32 * MIB


@LINUX
def test_started_processes_count_and_a_limit_of_the_process_too() -> None:
    program = (
        "import resource, subprocess, sys\n"
        "from gpudoctor.tuning.workers.devices import Host, host_memory\n"
        "host = Host()\n"
        "host.begin()\n"
        "hold = \"b = bytearray(b'x') * (64 * 2**20); print(1, flush=True); input()\"\n"
        "child = subprocess.Popen([sys.executable, '-c', hold], stdin=subprocess.PIPE, stdout=subprocess.PIPE)\n"
        "child.stdout.readline()\n"
        "print(host.memory_use().peak_bytes)\n"
        "child.communicate(b'x')\n"
        "resource.setrlimit(resource.RLIMIT_AS, (2**30, 2**30))\n"
        "print(*host_memory())\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    used, limits = done.stdout.splitlines()
    total, free = map(int, limits.split())
    assert total <= 2**30 > free
    if used != "None":  # this kernel resets the peak
        assert 60 * MIB < int(used) < 120 * MIB


@LINUX
def test_beyond_the_limit_an_allocation_fails_and_the_process_lives() -> None:
    program = (
        "from gpudoctor.tuning.workers.devices import Host\n"
        "host = Host(); host.limit_memory(50 * 2**20)\n"
        "kept = bytearray(20 * 2**20)\n"
        "try:\n    bytearray(200 * 2**20)\nexcept MemoryError:\n    print('refused')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "refused\n"


@LINUX
def test_the_memory_of_this_machine_is_known() -> None:
    total, free = host_memory()
    assert total is not None
    assert free is not None
    assert 0 < free <= total


def test_no_step_starts_after_the_deadline_except_the_first() -> None:
    done: list[int] = []
    past = time.perf_counter() - 1
    assert len(timed_one_by_one(lambda: done.append(1), 5, past, lambda: None)) == 1
    assert done == [1]


def test_each_step_is_waited_for() -> None:
    events: list[str] = []
    far = time.perf_counter() + 60
    seconds = timed_one_by_one(lambda: events.append("step"), 2, far, lambda: events.append("wait"))
    assert events == ["step", "wait", "step", "wait"]
    assert len(seconds) == 2
    assert all(second >= 0 for second in seconds)


@pytest.mark.parametrize(
    ("limit", "found"),
    [
        pytest.param(2**62 - 1, [(2**62 - 1, 5)], id="a limit"),
        pytest.param(2**62, [], id="none"),
        pytest.param(2**63 - 4096, [], id="what version 1 writes for none"),
    ],
)
def test_a_limit_of_a_control_group(limit: int, found: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch) -> None:
    folder = "/sys/fs/cgroup/memory"
    files = {
        "/proc/self/cgroup": "4:cpu:/job\n3:memory:/job\n",
        f"{folder}/job/memory.limit_in_bytes": str(limit),
        f"{folder}/job/memory.usage_in_bytes": "5",
    }
    monkeypatch.setattr(devices, "read_start", lambda path: files.get(path, ""))
    assert list(devices._group_limits()) == found


def test_a_processor_without_a_limit_is_never_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "_status_bytes", {"VmRSS": 100 * MIB}.get)
    host = devices.Host()
    monkeypatch.setattr(devices, "_status_bytes", {"VmRSS": 900 * MIB}.get)
    assert not host.is_full()
    host._limit_bytes = 800 * MIB
    assert host.is_full()
    host._limit_bytes = 1600 * MIB
    assert not host.is_full()


class Queue(devices.QueuedGpu):
    """A GPU whose clock goes on by 2 ms at each step."""

    monitor = None

    def __init__(self) -> None:
        self.milliseconds = 0.0
        self.log: list[str] = []

    def new_event(self) -> Any:
        event = SimpleNamespace(at=None)
        event.record = lambda: setattr(event, "at", self.milliseconds)
        return event

    def milliseconds_between(self, before: Any, after: Any) -> float:
        return float(after.at - before.at)

    def step(self) -> None:
        self.milliseconds += 2
        self.log.append("step")

    def synchronize(self) -> None:
        self.log.append("wait")


def test_queued_steps_are_timed_by_events_and_waited_for_once() -> None:
    queue = Queue()
    seconds, conditions = queue.time_steps(queue.step, 3, 0.0)
    assert seconds == [0.002, 0.002, 0.002]
    assert queue.log == ["step", "step", "step", "wait"]
    assert (conditions, queue.driver_version()) == (Conditions(), None)
