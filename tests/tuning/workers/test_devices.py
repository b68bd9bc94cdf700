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
from gpudoctor.tuning.workers.devices import MemoryUse, host_memory, timed_one_by_one
from tests.tuning.workers.asked import Asked

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


@pytest.mark.parametrize(("used", "full"), [(950, False), (951, True), (50, False)])
def test_a_processor_is_full_with_less_than_a_twentieth_left(
    used: int, full: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the libraries themselves take does not count; where the system does not tell, nothing is known of it."""
    monkeypatch.setattr(devices, "_status_bytes", lambda field: None)
    host = devices.Host()
    host._limit_bytes = 1000
    assert not host.is_full()
    monkeypatch.setattr(devices, "_status_bytes", {"VmRSS": used, "VmHWM": used + 7}.get)
    assert (host._above_base("VmRSS"), host._above_base("VmHWM"), host._above_base("VmData")) == (used, used + 7, None)
    assert host.is_full() is full


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


@pytest.mark.parametrize(("count", "clock", "done"), [(2, 0.0, 2), (3, 0.4, 2), (3, 0.5, 1), (0, 0.0, 0)])
def test_when_the_next_step_starts(count: int, clock: float, done: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock is read before the first step, after it, and to see whether the next one starts before 1.0."""
    readings = iter([0.0, 0.25, 2 * clock, 0.75, 1.0, 1.0])
    monkeypatch.setattr(devices, "time", SimpleNamespace(perf_counter=lambda: next(readings)))
    seconds = timed_one_by_one(lambda: None, count, 1.0, lambda: None)
    assert seconds == [0.25, 0.25][:done]


def cupy_device(monkeypatch: pytest.MonkeyPatch, **pool: Any) -> tuple[Any, Asked]:
    """Return the second GPU as CuPy's stand-in has it, and the stand-in."""
    of_device = Asked({}, pci_bus_id="0000:01:00.0", mem_info=pool.pop("mem_info", (500, 1000)))
    of_pool = Asked({"total_bytes": 80, "used_bytes": 30, "get_limit": 0, **pool})
    answers = {
        "cuda.Device": of_device,
        "get_default_memory_pool": of_pool,
        "cuda.Event": "an event",
        "cuda.get_elapsed_time": 3,
        "fft.config.get_plan_cache": pool.get("plan_cache", of_pool),
    }
    cupy = Asked(answers)
    of_device.calls = of_pool.calls = cupy.calls
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    monkeypatch.setattr(devices, "open_monitor", cupy.monitor)
    monkeypatch.setattr(devices, "gc", cupy.gc)
    return devices.Cupy(1, "/pynvml.py"), cupy


def test_a_trial_on_cupy(monkeypatch: pytest.MonkeyPatch) -> None:
    device, cupy = cupy_device(monkeypatch)
    assert (device.kind, device.name) == ("cuda", "cuda:1")
    device.begin()
    assert device.memory_use() == MemoryUse(peak_bytes=80, resident_bytes=30, reserved_bytes=80)
    device.limit_memory(400)
    assert device.new_event() == "an event"
    assert device.milliseconds_between("before", "after") == 3.0
    assert cupy.calls == [
        ("cuda.Device", 1),
        ("use",),
        ("get_default_memory_pool",),
        ("monitor", {"uuid": None, "pci_bus_id": "0000:01:00.0", "module_path": "/pynvml.py"}),
        ("gc.collect",),
        ("fft.config.get_plan_cache",),
        ("clear",),
        ("free_all_blocks",),
        ("synchronize",),
        ("gc.collect",),
        ("total_bytes",),
        ("used_bytes",),
        ("set_limit", {"size": 400}),
        ("cuda.Event",),
        ("cuda.get_elapsed_time", "before", "after"),
    ]


def test_cupy_without_a_cache_of_plans_frees_its_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    device, cupy = cupy_device(monkeypatch, plan_cache=AttributeError("an older CuPy"))
    device.free_memory()
    assert cupy.calls[-1] == ("free_all_blocks",)


@pytest.mark.parametrize(
    ("free", "held", "limit", "full"),
    [
        pytest.param(50, 950, 0, False, id="a twentieth is left"),
        pytest.param(49, 900, 0, True, id="less is free"),
        pytest.param(500, 951, 0, True, id="less is left of the device's memory"),
        pytest.param(500, 380, 400, False, id="a limit"),
        pytest.param(500, 381, 400, True, id="nearly at the limit"),
        pytest.param(RuntimeError("lost"), 999, 0, False, id="a device that answers no longer"),
    ],
)
def test_when_the_memory_of_cupy_is_full(
    free: Any, held: int, limit: int, full: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = free if isinstance(free, Exception) else (free, 1000)
    device, _ = cupy_device(monkeypatch, mem_info=info, total_bytes=held, get_limit=limit)
    assert device.is_full() is full


class Sensors(devices.QueuedGpu):
    monitor = Asked({"conditions": Conditions(clock_mhz=1980), "driver_version": "580.1"})


def test_a_gpu_with_a_monitor() -> None:
    assert (Sensors().conditions(), Sensors().driver_version()) == (Conditions(clock_mhz=1980), "580.1")


def test_a_device_by_itself_knows_nothing() -> None:
    device = devices.Device()
    assert (device.memory_use(), device.conditions()) == (MemoryUse(), Conditions())
    assert (device.driver_version(), device.is_full()) == (None, False)


KIB = 1024
PRIVATE = "Rss: 900 kB\nPrivate_Clean: 3 kB\nPrivate_Dirty:  4 kB\nShared_Dirty: 5 kB\n"


@pytest.mark.parametrize(
    ("status", "resets", "expected"),
    [
        pytest.param({"VmHWM": 900, "VmRSS": 700}, True, (800 + 7 * KIB, 600 + 7 * KIB), id="above the libraries"),
        pytest.param({"VmHWM": 90, "VmRSS": 70}, True, (7 * KIB, 7 * KIB), id="less than at the start"),
        pytest.param({"VmHWM": 900, "VmRSS": 700}, False, None, id="a kernel that does not reset the peak"),
        pytest.param({"VmRSS": 700}, True, None, id="no peak"),
        pytest.param({"VmHWM": 900}, True, None, id="nothing resident"),
    ],
)
def test_the_memory_of_a_trial_on_the_host(
    status: dict[str, int], resets: bool, expected: tuple[int, int] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(devices, "_status_bytes", {"VmRSS": 100}.get)
    host = devices.Host()
    assert host.memory_use() == MemoryUse()  # before it is begun
    monkeypatch.setattr(devices, "_status_bytes", status.get)
    monkeypatch.setattr(devices, "_reset_peak", lambda: resets)
    monkeypatch.setattr(devices, "descendants", lambda pid: [7, 8])
    monkeypatch.setattr(devices, "read_start", {"/proc/7/smaps_rollup": PRIVATE, "/proc/8/smaps_rollup": ""}.get)
    host.begin()
    used = MemoryUse() if expected is None else MemoryUse(peak_bytes=expected[0], resident_bytes=expected[1])
    assert host.memory_use() == used


@pytest.mark.parametrize(
    ("platform", "data", "soft", "limit"),
    [
        pytest.param("linux", 100, -1, 150, id="no limit so far"),
        pytest.param("linux", 100, 151, 150, id="a higher one"),
        pytest.param("linux", 100, 150, None, id="the same"),
        pytest.param("linux", 100, OSError(), None, id="no answer"),
        pytest.param("linux", None, -1, None, id="unknown use"),
        pytest.param("darwin", 100, -1, None, id="a Mac"),
    ],
)
def test_the_limit_of_the_host(
    platform: str, data: int | None, soft: Any, limit: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    resource = Asked(
        {"getrlimit": soft if isinstance(soft, Exception) else (soft, 999)}, RLIMIT_DATA=2, RLIM_INFINITY=-1
    )
    monkeypatch.setitem(sys.modules, "resource", resource)
    monkeypatch.setattr(devices, "_status_bytes", {"VmData": data}.get)
    host = devices.Host()
    monkeypatch.setattr(devices, "sys", SimpleNamespace(platform=platform))
    host.limit_memory(50)
    set_ = [call for call in resource.calls if call[0] == "setrlimit"]
    assert set_ == ([] if limit is None else [("setrlimit", 2, (limit, 999))])


MEMINFO = {"/proc/meminfo": "MemTotal:       1000 kB\nMemFree: 1 kB\nMemAvailable:    600 kB\n"}
SYSCONF = {"SC_PHYS_PAGES": 200, "SC_PAGE_SIZE": 4096}


@pytest.mark.parametrize(
    ("files", "sysconf", "limits", "expected"),
    [
        pytest.param(MEMINFO, {}, [], (1000 * KIB, 600 * KIB), id="the machine's"),
        pytest.param({}, SYSCONF, [], (200 * 4096, None), id="no /proc/meminfo"),
        pytest.param({}, {}, [], (None, None), id="unknown"),
        pytest.param({}, {}, [(500, 200)], (500, 300), id="a limit alone"),
        pytest.param(MEMINFO, {}, [(500 * KIB, 200 * KIB)], (500 * KIB, 300 * KIB), id="a lower limit"),
        pytest.param(MEMINFO, {}, [(2000 * KIB, 200 * KIB)], (1000 * KIB, 600 * KIB), id="a higher one"),
        pytest.param(MEMINFO, {}, [(500, 501)], (500, 0), id="a limit that is passed"),
    ],
)
def test_the_memory_that_a_process_could_have(
    files: dict[str, str],
    sysconf: dict[str, int],
    limits: list[tuple[int, int]],
    expected: tuple[int | None, int | None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def look_up(name: str) -> int:
        if name not in sysconf:
            raise ValueError(name)
        return sysconf[name]

    monkeypatch.setattr(devices, "read_start", lambda path: files.get(path, ""))
    monkeypatch.setattr(devices, "os", SimpleNamespace(sysconf=look_up))
    for one, other in ((limits, []), ([], limits)):
        monkeypatch.setattr(devices, "_group_limits", lambda one=one: one)
        monkeypatch.setattr(devices, "_process_limits", lambda other=other: other)
        assert host_memory() == expected


def test_the_limits_of_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = iter([(900, 7), (500, 8), (-1, 7), (500, 8)])
    resource = Asked({"getrlimit": limits}, RLIMIT_AS=9, RLIMIT_DATA=2, RLIM_INFINITY=-1)
    monkeypatch.setitem(sys.modules, "resource", resource)
    monkeypatch.setattr(devices, "_status_bytes", {"VmSize": 30, "VmData": 20}.get)
    assert list(devices._process_limits()) == [(900, 30), (500, 20)]
    monkeypatch.setattr(devices, "_status_bytes", {"VmSize": 30}.get)
    assert list(devices._process_limits()) == []
    assert resource.calls == [("getrlimit", 9), ("getrlimit", 2)] * 2


def test_every_control_group_above_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    files = {
        "/proc/self/cgroup": "4:cpu,memory:/job/step\n1:name=systemd:/x\n0::/user/a:b\n",
        "/sys/fs/cgroup/memory/memory.limit_in_bytes": "9",
        "/sys/fs/cgroup/memory/memory.usage_in_bytes": "1",
        "/sys/fs/cgroup/memory/job/step/memory.limit_in_bytes": "8",
        "/sys/fs/cgroup/memory/job/step/memory.usage_in_bytes": "2",
        "/sys/fs/cgroup/user/memory.max": "7",
        "/sys/fs/cgroup/user/memory.current": "3",
        "/sys/fs/cgroup/user/a:b/memory.max": "max",
        "/sys/fs/cgroup/user/a:b/memory.current": "3",
        "/sys/fs/cgroup/unified/user/a:b/memory.max": "6",
        "/sys/fs/cgroup/unified/user/a:b/memory.current": "4",
    }
    monkeypatch.setattr(devices, "read_start", lambda path: files.get(path, ""))
    assert list(devices._group_limits()) == [(9, 1), (8, 2), (7, 3), (6, 4)]


@pytest.mark.parametrize(("text", "size"), [("VmRSS:\t  12 kB\n", 12 * KIB), ("XVmRSS: 12 kB\n", None), ("", None)])
def test_a_size_of_this_process(text: str, size: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "read_start", {"/proc/self/status": f"Name: x\n{text}"}.get)
    assert devices._status_bytes("VmRSS") == size


def test_the_peak_of_a_kernel_that_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise PermissionError

    monkeypatch.setattr(devices, "open", refuse, raising=False)
    assert devices._reset_peak() is False


@pytest.mark.parametrize(
    ("meminfo", "limits", "known"),
    [
        pytest.param("MemTotal: 8 kB\nMemAvailable: 5 kB\n", [], (8192, 5120), id="the machine"),
        pytest.param("MemTotal: 8 kB\nMemAvailable: 5 kB\n", [(6144, 2048)], (6144, 4096), id="a lower limit"),
        pytest.param("MemTotal: 8 kB\nMemAvailable: 1 kB\n", [(6144, 2048)], (6144, 1024), id="less is free"),
        pytest.param("MemTotal: 8 kB\nMemAvailable: 5 kB\n", [(9000, 0)], (8192, 5120), id="a higher limit"),
        pytest.param("MemTotal: 8 kB\nMemAvailable: 5 kB\n", [(100, 300)], (100, 0), id="more is used than allowed"),
        pytest.param("MemTotal: 8 kB\n", [(100, 300)], (100, 0), id="the same where it is not known what is free"),
        pytest.param("MemTotal: 8 kB\n", [(100, 30), (90, 10)], (90, 70), id="the lowest of several"),
    ],
)
def test_the_memory_that_a_process_may_have(
    meminfo: str, limits: list[tuple[int, int]], known: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(devices, "read_start", {"/proc/meminfo": meminfo}.get)
    monkeypatch.setattr(devices, "_group_limits", lambda: limits[:1])
    monkeypatch.setattr(devices, "_process_limits", lambda: limits[1:])
    assert host_memory() == known
