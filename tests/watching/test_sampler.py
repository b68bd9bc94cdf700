"""The CPU use of a program and of what it started."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gpudoctor.model.codec import to_json
from gpudoctor.watching import cpu_use, sampler
from gpudoctor.watching.cpu_use import CpuUse
from gpudoctor.watching.samples import DeviceSample, Sample, Watch, WatchedDevice
from gpudoctor.watching.watcher import Watcher
from tests.conftest import Install
from tests.stand_ins import RTX_4090, Nvml

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
BUSY = [sys.executable, "-c", "import os\nparent = os.getppid()\nwhile os.getppid() == parent: pass"]
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


def test_a_program_that_is_busy_in_a_child() -> None:
    with running(IN_A_CHILD) as process:
        cores = cores_of(process)
    assert cores is not None
    assert 0.1 < cores < 1.5  # others may want the machine too


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


def test_what_is_watched(watch: Callable[[Nvml], Watch]) -> None:
    gpu = RTX_4090.but(memory_used=2000 * MIB, utilization=97)
    seen = watch(Nvml(devices=(gpu,)))
    (device,) = seen.devices
    assert (device.nvml_index, device.name, device.power_limit_watts) == (0, "NVIDIA GeForce RTX 4090", 450.0)
    assert (device.memory_total_bytes, device.clock_max_mhz) == (24564 * MIB, 3120)
    (sample,) = seen.samples[0].devices
    assert (sample.utilization_percent, sample.temperature_celsius, sample.power_watts) == (97, 34, 21.34)
    assert sample.memory_used_bytes == 2000 * MIB


class Ended(BaseException):
    """What ends the process that looks again and again."""


def gate_of(told: dict[tuple[Any, ...], Any]) -> Any:
    """Return what answers like NVML: by function and arguments; whatever is not told is not supported."""

    def ask(functions: str, *arguments: Any) -> dict[str, Any]:
        asked = (functions.split(maxsplit=1)[0].removeprefix("nvml"), *arguments)
        return {"value": told[asked]} if asked in told else {"error": 3, "text": "Not Supported"}

    def call(function: str, *arguments: Any) -> tuple[Any, dict[str, Any] | None]:
        answer = ask(function, *arguments)
        return answer.get("value"), None if "value" in answer else answer

    return SimpleNamespace(ask=ask, ask_list=ask, call=call)


TOLD: dict[tuple[Any, ...], Any] = {
    ("DeviceGetCount",): 4,
    ("DeviceGetHandleByIndex", 0): "a",
    ("DeviceGetHandleByIndex", 2): "c",
    ("DeviceGetHandleByIndex", 4): "never asked",
    ("DeviceGetName", "a"): "A10",
    ("DeviceGetEnforcedPowerLimit", "a"): 150_500,
    ("DeviceGetMaxClockInfo", "a", 1): 1695,
    ("DeviceGetMemoryInfo", "a", 0x02000028): {"total": 1000, "used": 70},
    ("DeviceGetMemoryInfo", "a"): {"total": 1000, "used": 90},  # with what the driver reserves
    ("DeviceGetMemoryInfo", "c"): {"total": 2000, "used": 80},
    ("DeviceGetUtilizationRates", "a"): {"gpu": 0, "memory": 9},
    ("DeviceGetClockInfo", "a", 1): 210,
    ("DeviceGetPowerUsage", "a"): 17_250,
    ("DeviceGetTemperatureV", "a", 0): 41,
    ("DeviceGetCurrentClocksEventReasons", "a"): 0x5,
    ("DeviceGetComputeRunningProcesses_v3", "a"): [{"pid": 77, "usedGpuMemory": None}],
}


def answers_of(gate: Any, problem: str, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return what is answered until the fifth look; the program stands still at the second one."""
    answers: list[Any] = []
    monkeypatch.setattr(
        sampler, "take_over_streams", lambda: (iter([{"pid": 77, "every_seconds": 0.5}]), answers.append)
    )
    monkeypatch.setattr(sampler, "open_nvml", lambda: (gate, problem))
    monkeypatch.setattr(sampler, "own_pids", {77}.intersection)
    states = [("S", 1.0, 10.0), ("T", 1.5, 10.0), ("R", 2.0, 20.0), ("R", 2.25, 21.0)]
    tables = iter(
        [
            {77: (state, 1, own, 2, 100), 78: ("S", 77, childs, 1, 50), 1: ("S", 0, 99.0, 1, 9)}
            for state, own, childs in states
        ]
    )
    now = [100.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds
        if now[0] > 102.0:
            raise Ended

    clock = SimpleNamespace(monotonic=lambda: now[0], sleep=sleep)
    monkeypatch.setattr(sampler, "time", clock)
    monkeypatch.setattr(cpu_use, "time", clock)
    monkeypatch.setattr(cpu_use, "_processes", lambda: next(tables))
    monkeypatch.setattr(cpu_use, "cgroup_folder", lambda pid: "")
    monkeypatch.setattr(cpu_use, "SHARED_MEMORY", "/nowhere")
    monkeypatch.setattr(sampler, "allowed_cpus", lambda pid: 4.0)
    monkeypatch.setattr("gpudoctor.watching.disk_use._io", {77: (5, 2**20)}.get)
    with suppress(Ended):
        sampler.main()
    return answers


def test_all_events_until_the_process_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    devices = (
        WatchedDevice(
            nvml_index=0,
            name="A10",
            memory_total_bytes=1000,
            power_limit_watts=150.5,
            clock_max_mhz=1695,
            unread=("PCIe traffic: Not Supported",),
        ),
        WatchedDevice(
            nvml_index=2,
            memory_total_bytes=2000,
            unread=tuple(f"{name}: Not Supported" for name in sampler.READ.values() if name != "memory"),
        ),
    )
    seen = (
        DeviceSample(
            nvml_index=0,
            utilization_percent=0,
            memory_used_bytes=70,
            clock_mhz=210,
            power_watts=17.25,
            temperature_celsius=41,
            throttle_reasons=(),
            is_used_by_program=True,
            other_bytes=0,
        ),
        DeviceSample(nvml_index=2, memory_used_bytes=80),
    )
    samples = [
        Sample(
            at_seconds=at,
            cpu_cores=cores,
            devices=seen,
            memory_bytes=150,
            processes=2,
            threads=3,
            disk_read_bytes=0,
            disk_written_bytes=0,
        )
        for at, cores in ((0.5, None), (1.5, None), (2.0, 2.5))
    ]
    unusable = ("GPU 1: Not Supported", "GPU 3: Not Supported")
    expected = [to_json(Watch(devices=devices, unusable=unusable, allowed_cpus=4.0)), *map(to_json, samples)]
    assert answers_of(gate_of(TOLD), "", monkeypatch) == expected


@pytest.mark.parametrize(
    ("gate", "problem", "told"),
    [
        (None, "NVML does not start", "NVML does not start"),
        (gate_of({("DeviceGetCount",): 0}), "", "NVML reports no usable GPU"),
        (gate_of({("DeviceGetCount",): 1}), "", "GPU 0: Not Supported"),
        (gate_of({("DeviceGetHandleByIndex", 0): "a"}), "", "NVML does not count the GPUs: Not Supported"),
    ],
)
def test_without_a_gpu_the_program_is_watched_all_the_same(
    gate: Any, problem: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin, *samples = answers_of(gate, problem, monkeypatch)
    assert begin == to_json(Watch(problem=told, allowed_cpus=4.0))
    assert [(sample.get("devices", []), sample["processes"]) for sample in samples] == [([], 2)] * 3


@pytest.mark.parametrize(
    ("pids", "is_used"), [([5, 77], True), ([os.getpid()], False), ([os.getpid(), 2**22 + 1], None), ([], None)]
)
def test_whether_the_program_is_on_the_device(pids: list[int], is_used: bool | None) -> None:
    assert cpu_use.is_used(dict.fromkeys(pids, 1), {77}.intersection(pids)) is is_used


@pytest.mark.parametrize(
    ("visible", "expected"),
    [(None, True), ("", True), ("0,1", True), ("0", False), ("GPU-12", True), ("GPU-99", False), ("-1", True)],
)
def test_gpus_that_the_job_has(visible: str | None, expected: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert sampler._is_visible(WatchedDevice(nvml_index=1), "GPU-1234") is expected


@pytest.mark.parametrize(
    ("text", "process"),
    [
        (b"5 (a b) c) S 4 " + b"1 " * 9 + b"100 20 3 4 50 60 7 8 9 10 11", ("S", 4, 1.27, 7, 44)),
        (b"5 (x) R 4", None),
        (b"5 (x) R", None),
        (b"5 (x) R four", None),
        (b"", None),
        (None, None),
    ],
)
def test_what_the_kernel_shows_of_a_process(
    text: bytes | None, process: tuple[str, int, float, int, int] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def open_stat(path: str, mode: str) -> io.BytesIO:
        assert (path, mode) == ("/proc/5/stat", "rb")
        if text is None:
            raise FileNotFoundError
        return io.BytesIO(text)

    monkeypatch.setattr(cpu_use, "open", open_stat, raising=False)
    assert cpu_use._process(5, 100, 4) == process
