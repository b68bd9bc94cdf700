"""The side process that looks at GPU and program again and again, so that a driver that hangs or crashes harms neither.

Its answers: first a `Watch` with the devices or the problem, then `Sample` after `Sample`.
"""

import os
import time
from collections.abc import Iterator
from typing import Any

from gpudoctor.model.codec import to_json
from gpudoctor.nvml import MEMORY_V2, SM, Gate, is_own, open_nvml
from gpudoctor.tuning.workers.conditions import Monitor, foreign_memory_bytes, own_pids
from gpudoctor.watching.amd import AmdGpus
from gpudoctor.watching.cpu_use import CpuUse, allowed_cpus, is_used
from gpudoctor.watching.samples import DeviceSample, Sample, Watch, WatchedDevice
from gpudoctor.worker import take_over_streams

RECEIVED = 1  # nvmlPcieUtilCounter_t
READ = {
    "nvmlDeviceGetName": "name",
    "nvmlDeviceGetUtilizationRates": "utilisation",
    "nvmlDeviceGetMemoryInfo": "memory",
    "nvmlDeviceGetComputeRunningProcesses_v3": "processes",
    "nvmlDeviceGetClockInfo": "SM clock",
    "nvmlDeviceGetMaxClockInfo": "highest SM clock",
    "nvmlDeviceGetPowerUsage": "power draw",
    "nvmlDeviceGetEnforcedPowerLimit": "power limit",
    "nvmlDeviceGetTemperatureV": "temperature",
    "nvmlDeviceGetCurrentClocksEventReasons": "reasons for lower clocks",
    "nvmlDeviceGetPcieThroughput": "PCIe traffic",
}
"""What is read of a device, by the first function that is asked for it."""


def main() -> None:
    """Answer the one request with samples until this process is ended.

    It has the program's `pid`, None for none, and `every_seconds`.
    """
    requests, answer = take_over_streams()
    request: Any = next(requests)
    pid = request["pid"]
    gate, problem = open_nvml()
    unusable: list[str] = []
    watched = [] if gate is None else list(_devices(gate, unusable, pid))
    amd = AmdGpus() if not watched else None
    watched = watched if amd is None else list(amd.devices())
    if watched:
        problem = ""
    elif not problem:
        problem = "; ".join(unusable) or "NVML reports no usable GPU"
    devices = tuple(device for device, _ in watched)
    cpu = CpuUse(pid)
    others = tuple(unusable) if watched else ()
    answer(to_json(Watch(devices=devices, unusable=others, problem=problem, allowed_cpus=allowed_cpus(pid))))
    if not watched and pid is None:
        return
    begun = time.monotonic()
    while True:
        time.sleep(request["every_seconds"])
        if not cpu.look():
            continue
        if amd is None:
            samples = tuple(_sample(gate, device.nvml_index, handle, pid) for device, handle in watched)
        else:
            own = cpu.pids()
            samples = tuple(amd.sample(device.nvml_index, handle, own) for device, handle in watched)
        at_seconds = time.monotonic() - begun
        answer(to_json(Sample(at_seconds=at_seconds, cpu_cores=cpu.cores, devices=samples, **cpu.more())))


class Noting:
    """Asks NVML, and notes which functions failed, and why."""

    def __init__(self, gate: Any) -> None:
        self._gate = gate
        self.failures: dict[str, str] = {}

    def ask(self, functions: str, *arguments: Any) -> dict[str, Any]:
        """Return the answer of the first of `functions` that there is."""
        return self._noted(functions, self._gate.ask(functions, *arguments))

    def ask_list(self, functions: str, *arguments: Any) -> dict[str, Any]:
        """Return the list of the first of `functions` that there is."""
        return self._noted(functions, self._gate.ask_list(functions, *arguments))

    def _noted(self, functions: str, found: dict[str, Any]) -> dict[str, Any]:
        name = functions.partition(" ")[0]
        self.failures.pop(name, None)
        if "error" in found:
            self.failures[name] = found["text"]
        return found


def _devices(gate: Gate, unusable: list[str], pid: int | None) -> Iterator[tuple[WatchedDevice, Any]]:
    """Give each device of the job that can be used, with its handle; add to `unusable` why others cannot."""
    counted = gate.ask("nvmlDeviceGetCount")
    if "error" in counted:
        unusable.append(f"NVML does not count the GPUs: {counted['text']}")
    for index in range(counted.get("value") or 0):
        handle, failure = gate.call("nvmlDeviceGetHandleByIndex", index)
        if failure is not None:
            unusable.append(f"GPU {index}: {failure['text']}")
            continue
        asked = Noting(gate)
        _sample(asked, index, handle, pid)
        limit = asked.ask("nvmlDeviceGetEnforcedPowerLimit", handle).get("value")
        device = WatchedDevice(
            nvml_index=index,
            name=asked.ask("nvmlDeviceGetName", handle).get("value"),
            memory_total_bytes=_memory(asked, handle).get("total"),
            power_limit_watts=None if limit is None else limit / 1000,
            clock_max_mhz=asked.ask("nvmlDeviceGetMaxClockInfo", handle, SM).get("value"),
            is_mig=(asked.ask("nvmlDeviceGetMigMode", handle).get("value") or [0])[0] == 1,
            unread=tuple(f"{name}: {asked.failures[key]}" for key, name in READ.items() if key in asked.failures),
        )
        if _is_visible(device, str(asked.ask("nvmlDeviceGetUUID", handle).get("value") or "")):
            yield device, handle


def _sample(gate: Any, nvml_index: int, handle: Any, pid: int | None) -> DeviceSample:
    asked = Noting(gate)
    now = Monitor(asked, handle).conditions()
    utilization = asked.ask("nvmlDeviceGetUtilizationRates", handle).get("value") or {}
    memory = _memory(asked, handle)
    received = asked.ask("nvmlDeviceGetPcieThroughput", handle, RECEIVED).get("value")
    answer = asked.ask_list("nvmlDeviceGetComputeRunningProcesses_v3 nvmlDeviceGetComputeRunningProcesses_v2", handle)
    used = {process["pid"]: process["usedGpuMemory"] for process in answer.get("value", ())}
    own = own_pids(used) | {each for each in used if pid is not None and is_own(each, {pid})}
    is_silent = not utilization and not memory and now.clock_mhz is None and now.temperature_celsius is None
    return DeviceSample(
        nvml_index=nvml_index,
        utilization_percent=utilization.get("gpu"),
        memory_used_bytes=memory.get("used"),
        clock_mhz=now.clock_mhz,
        power_watts=now.power_watts,
        temperature_celsius=now.temperature_celsius,
        throttle_reasons=now.throttle_reasons,
        is_used_by_program=is_used(used, own),
        other_bytes=foreign_memory_bytes(used, own) if answer.get("value") else None,
        received_bytes_per_second=None if received is None else received * 1000,
        problem=asked.failures.get("nvmlDeviceGetMemoryInfo", "no answer") if is_silent else None,
    )


def _memory(gate: Any, handle: Any) -> dict[str, int]:
    found = gate.ask("nvmlDeviceGetMemoryInfo", handle, MEMORY_V2).get("value")
    return found or gate.ask("nvmlDeviceGetMemoryInfo", handle).get("value") or {}


def _is_visible(device: WatchedDevice, uuid: str) -> bool:
    """Return whether the job has this device, by CUDA_VISIBLE_DEVICES."""
    chosen = [entry.strip() for entry in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if entry.strip()]
    named = [entry for entry in chosen if entry == str(device.nvml_index) or uuid.startswith(entry)]
    return bool(named) or not chosen or chosen[0].startswith(("-", "MIG"))
