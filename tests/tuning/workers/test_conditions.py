"""What NVML tells while a trial runs, by a stand-in for its module."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gpudoctor.model.tuning import Conditions
from gpudoctor.nvml import Gate
from gpudoctor.tuning.workers import conditions
from gpudoctor.tuning.workers.conditions import Monitor, foreign_memory_bytes, open_monitor, own_pids


class NVMLError(Exception):
    """As pynvml's."""

    value = 3


def refuse(*_: Any) -> Any:
    raise NVMLError


def monitor(**functions: Any) -> Monitor:
    module = SimpleNamespace(NVMLError=NVMLError, nvmlErrorString=lambda code: "Not Supported", **functions)
    return Monitor(Gate(module, SimpleNamespace()), "device")


def test_clocks_power_and_reasons() -> None:
    conditions = monitor(
        nvmlDeviceGetClockInfo=lambda device, clock: 1635,
        nvmlDeviceGetPowerUsage=lambda device: 698_500,
        nvmlDeviceGetTemperature=lambda device, sensor: 71,
        nvmlDeviceGetCurrentClocksThrottleReasons=lambda device: 0x1 | 0x2 | 0x4 | 0x40,
    ).conditions()
    assert (conditions.clock_mhz, conditions.power_watts, conditions.temperature_celsius) == (1635, 698.5, 71)
    assert conditions.throttle_reasons == ("hw_thermal_slowdown",)  # idle, set clocks and the power limit are normal


def test_what_the_device_does_not_show_is_unknown() -> None:
    functions = ("nvmlDeviceGetClockInfo", "nvmlDeviceGetPowerUsage", "nvmlDeviceGetCurrentClocksEventReasons")
    assert monitor(**dict.fromkeys(functions, refuse)).conditions() == Conditions()


def test_no_reason_is_known_to_be_none() -> None:
    conditions = monitor(nvmlDeviceGetCurrentClocksEventReasons=lambda device: 1).conditions()
    assert conditions.throttle_reasons == ()


PROCESSES = {
    "nvmlDeviceGetComputeRunningProcesses": [{"pid": 1, "usedGpuMemory": 100}, {"pid": 2, "usedGpuMemory": 30}],
    "nvmlDeviceGetGraphicsRunningProcesses": [{"pid": 2, "usedGpuMemory": 30}, {"pid": 3, "usedGpuMemory": 4}],
}
POWER, CLOCK = "nvmlDeviceGetPowerUsage", "nvmlDeviceGetClockInfo"
TEMPERATURE = "nvmlDeviceGetTemperatureV nvmlDeviceGetTemperature"
REASONS = "nvmlDeviceGetCurrentClocksEventReasons nvmlDeviceGetCurrentClocksThrottleReasons"


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        pytest.param(
            {POWER: 700_000, CLOCK: 1980, TEMPERATURE: 60, REASONS: 0, **PROCESSES},
            Conditions(
                clock_mhz=1980,
                power_watts=700.0,
                temperature_celsius=60,
                throttle_reasons=(),
                foreign_memory_bytes=34,
            ),
            id="everything",
        ),
        pytest.param(
            {POWER: 0, CLOCK: 2**63 - 1, TEMPERATURE: 0},
            Conditions(power_watts=0.0, clock_mhz=2**63 - 1, temperature_celsius=0),
            id="the ends of what is a number",
        ),
        pytest.param({POWER: -1, CLOCK: 2**63, TEMPERATURE: "hot"}, Conditions(), id="what is none"),
        pytest.param(dict(list(PROCESSES.items())[:1]), Conditions(foreign_memory_bytes=30), id="one list alone"),
    ],
)
def test_all_that_is_asked_at_one_moment(
    told: dict[str, Any], expected: Conditions, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[Any, ...]] = []

    def ask(functions: str, *arguments: Any) -> dict[str, Any]:
        asked.append((functions, *arguments))
        known = functions.partition("_v3")[0]
        return {"value": told[known]} if known in told else {"error": 3, "text": "Not Supported"}

    monkeypatch.setattr(conditions, "own_pids", {1}.intersection)
    seen = Monitor(SimpleNamespace(ask=ask, ask_list=ask), "device")
    assert seen.conditions() == expected
    assert asked == [
        (POWER, "device"),
        (CLOCK, "device", 1),
        (TEMPERATURE, "device", 0),
        (REASONS, "device"),
        *((f"{name}_v3 {name}_v2", "device") for name in PROCESSES),
    ]


@pytest.mark.parametrize(("answer", "version"), [("550.54", "550.54"), (None, None), (550, None)])
def test_the_version_of_the_driver(answer: Any, version: str | None) -> None:
    assert monitor(nvmlSystemGetDriverVersion=lambda: answer).driver_version() == version


def test_without_the_library_there_is_no_monitor(tmp_path: Path) -> None:
    if Path("/dev/nvidiactl").exists():
        pytest.skip("here is a driver")
    assert open_monitor(uuid="GPU-1", pci_bus_id=None, module_path=str(tmp_path / "pynvml.py")) is None


@pytest.mark.parametrize(
    ("used", "own", "foreign"),
    [
        pytest.param({1: 100, 2: 30, 3: 4}, {1}, 34, id="others"),
        pytest.param({1: 100}, {1}, 0, id="we alone"),
        pytest.param({}, set(), 0, id="nobody, before the first allocation"),
        pytest.param({901: 100}, set(), 0, id="in a container, we alone"),
        pytest.param({901: 100, 902: 3}, set(), None, id="in a container, we and others"),
        pytest.param({1: 100, 2: None}, {1}, None, id="a size that is not told"),
    ],
)
def test_foreign_memory(used: dict[int, int | None], own: set[int], foreign: int | None) -> None:
    assert foreign_memory_bytes(used, own) == foreign


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_other_workers_of_the_run_are_our_own(monkeypatch: pytest.MonkeyPatch) -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    monkeypatch.setattr(os, "getppid", lambda: child.pid)  # it is 1 if whoever started the tests has ended
    try:
        assert own_pids([child.pid, os.getpid(), 1]) == {child.pid, os.getpid()}
    finally:
        child.communicate(b"\n")


UUID, BUS, INDEX = "nvmlDeviceGetHandleByUUID", "nvmlDeviceGetHandleByPciBusId", "nvmlDeviceGetHandleByIndex"


@pytest.mark.parametrize(
    ("uuid", "pci_bus_id", "devices", "asked"),
    [
        pytest.param("GPU-1", "0:1", 2, [(UUID, b"GPU-1"), (BUS, b"0:1")], id="by its UUID first, then by its place"),
        pytest.param(None, "0:1", 1, [(BUS, b"0:1")], id="by its place"),
        pytest.param(None, None, 1, [(INDEX, 0)], id="the only one"),
        pytest.param(None, None, 2, [], id="one of two, of which nothing is known"),
    ],
)
def test_how_the_device_is_found(
    uuid: str | None,
    pci_bus_id: str | None,
    devices: int,
    asked: list[tuple[str, bytes | int]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for last in range(len(asked) + 1):
        calls: list[tuple[str, bytes | int]] = []

        def call(name: str, argument: bytes | int, calls: Any = calls, last: int = last) -> tuple[Any, str | None]:
            calls.append((name, argument))
            return ("handle", None) if len(calls) == last else (None, "Not Found")

        gate = SimpleNamespace(call=call, ask=lambda _: {"value": devices})
        monkeypatch.setattr(conditions, "open_nvml", lambda _, gate=gate: (gate, None))
        found = open_monitor(uuid=uuid, pci_bus_id=pci_bus_id)
        assert (found is not None, calls) == (bool(last), asked[: last or None])
