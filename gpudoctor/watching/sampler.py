"""The side process that looks at GPU and program again and again, so that a driver that hangs or crashes harms neither.

Its answers: first a `Watch` with the devices or the problem, then `Sample` after `Sample`.
"""

import os
import time
from collections.abc import Iterator
from typing import Any

from gpudoctor.model.codec import to_json
from gpudoctor.nvml import MEMORY_V2, SM, Gate, open_nvml
from gpudoctor.tuning.workers.conditions import Monitor, own_pids
from gpudoctor.watching.samples import DeviceSample, Sample, Watch, WatchedDevice
from gpudoctor.worker import take_over_streams

STAT_BYTES = 4096


def main() -> None:
    """Answer the one request, of a program's `pid` and `every_seconds`, with samples until this process is ended."""
    requests, answer = take_over_streams()
    request: Any = next(requests)
    gate, problem = open_nvml()
    watched = [] if gate is None else list(_devices(gate))
    if gate is None or not watched:
        answer(to_json(Watch(problem=problem or "NVML reports no usable GPU")))
        return
    answer(to_json(Watch(devices=tuple(device for device, _ in watched))))
    cpu = CpuUse(request["pid"])
    begun = time.monotonic()
    while True:
        time.sleep(request["every_seconds"])
        if not cpu.look():
            continue
        samples = tuple(_sample(gate, device.nvml_index, handle) for device, handle in watched)
        answer(to_json(Sample(at_seconds=time.monotonic() - begun, cpu_cores=cpu.cores, devices=samples)))


def _devices(gate: Gate) -> Iterator[tuple[WatchedDevice, Any]]:
    """Give each device that can be used, with its handle."""
    count = gate.ask("nvmlDeviceGetCount").get("value") or 0
    for index in range(count):
        handle, failure = gate.call("nvmlDeviceGetHandleByIndex", index)
        if failure is not None:
            continue
        limit = gate.ask("nvmlDeviceGetEnforcedPowerLimit", handle).get("value")
        device = WatchedDevice(
            nvml_index=index,
            name=gate.ask("nvmlDeviceGetName", handle).get("value"),
            memory_total_bytes=_memory(gate, handle).get("total"),
            power_limit_watts=None if limit is None else limit / 1000,
            clock_max_mhz=gate.ask("nvmlDeviceGetMaxClockInfo", handle, SM).get("value"),
        )
        yield device, handle


def _sample(gate: Gate, nvml_index: int, handle: Any) -> DeviceSample:
    now = Monitor(gate, handle).conditions()
    utilization = gate.ask("nvmlDeviceGetUtilizationRates", handle).get("value") or {}
    return DeviceSample(
        nvml_index=nvml_index,
        utilization_percent=utilization.get("gpu"),
        memory_used_bytes=_memory(gate, handle).get("used"),
        clock_mhz=now.clock_mhz,
        power_watts=now.power_watts,
        temperature_celsius=now.temperature_celsius,
        throttle_reasons=now.throttle_reasons,
        is_used_by_program=_is_used(gate, handle),
    )


def _memory(gate: Gate, handle: Any) -> dict[str, int]:
    found = gate.ask("nvmlDeviceGetMemoryInfo", handle, MEMORY_V2).get("value")
    return found or gate.ask("nvmlDeviceGetMemoryInfo", handle).get("value") or {}


def _is_used(gate: Gate, handle: Any) -> bool | None:
    """Return whether the program is on the device; None if NVML gives no ids, or those of another namespace.

    In a container they are the host's, or the list is empty (https://github.com/NVIDIA/nvidia-docker/issues/1483).
    """
    answer = gate.ask_list("nvmlDeviceGetComputeRunningProcesses_v3 nvmlDeviceGetComputeRunningProcesses_v2", handle)
    pids = [process["pid"] for process in answer.get("value", ())]
    if own_pids(pids):  # the program has the same parent as this process
        return True
    return False if pids and all(os.path.exists(f"/proc/{pid}") for pid in pids) else None


class CpuUse:
    """How busy the program keeps the CPU, with all processes that it started. Source: proc_pid_stat(5).

    cores: since the look before; None at the first one, and if there is no /proc.
    """

    def __init__(self, pid: int) -> None:
        self.cores: float | None = None
        self._pid = pid
        self._before: tuple[float, float] | None = None

    def look(self) -> bool:
        """Bring `cores` up to date; return whether the program runs, and is not stopped by Ctrl-Z."""
        processes = _processes()
        if self._pid not in processes:
            self.cores = self._before = None
            return True
        if processes[self._pid][0] in "Tt":
            self._before = None
            return False
        now, used = time.monotonic(), _cpu_seconds(self._pid, processes)
        before, self._before = self._before, (now, used)
        self.cores = None if before is None else max(used - before[1], 0.0) / (now - before[0])
        return True


def _processes() -> dict[int, tuple[str, int, float]]:
    """Return each process as state, parent, and CPU seconds with those of the children that it waited for."""
    try:
        ticks = os.sysconf("SC_CLK_TCK")
        pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except (OSError, AttributeError, ValueError):
        return {}
    return {pid: process for pid in pids if (process := _process(pid, ticks)) is not None}


def _process(pid: int, ticks: int) -> tuple[str, int, float] | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read(STAT_BYTES).rpartition(b")")[2].split()
        return fields[0].decode(), int(fields[1]), sum(map(int, fields[11:15])) / ticks
    except (OSError, ValueError, IndexError):  # it has ended meanwhile
        return None


def _cpu_seconds(root: int, processes: dict[int, tuple[str, int, float]]) -> float:
    children: dict[int, list[int]] = {}
    for pid, (_, parent, _) in processes.items():
        children.setdefault(parent, []).append(pid)
    family, seconds = [root], 0.0
    while family:
        pid = family.pop()
        seconds += processes[pid][2]
        family += children.get(pid, ())
    return seconds
