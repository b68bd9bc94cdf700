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


def main() -> None:
    """Answer the one request with samples until this process is ended.

    It has the program's `pid`, None for none, and `every_seconds`.
    """
    requests, answer = take_over_streams()
    request: Any = next(requests)
    pid = request["pid"]
    gate, problem = open_nvml()
    watched = [] if gate is None else list(_devices(gate))
    amd = AmdGpus() if not watched else None
    watched = watched if amd is None else list(amd.devices())
    if watched:
        problem = ""
    elif not problem:
        problem = "NVML reports no usable GPU"
    devices = tuple(device for device, _ in watched)
    cpu = CpuUse(pid)
    answer(to_json(Watch(devices=devices, problem=problem, allowed_cpus=allowed_cpus(pid))))
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


def _devices(gate: Gate) -> Iterator[tuple[WatchedDevice, Any]]:
    """Give each device of the job that can be used, with its handle."""
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
            is_mig=(gate.ask("nvmlDeviceGetMigMode", handle).get("value") or [0])[0] == 1,
        )
        if _is_visible(device, str(gate.ask("nvmlDeviceGetUUID", handle).get("value") or "")):
            yield device, handle


def _sample(gate: Any, nvml_index: int, handle: Any, pid: int | None) -> DeviceSample:
    now = Monitor(gate, handle).conditions()
    utilization = gate.ask("nvmlDeviceGetUtilizationRates", handle).get("value") or {}
    received = gate.ask("nvmlDeviceGetPcieThroughput", handle, RECEIVED).get("value")
    answer = gate.ask_list("nvmlDeviceGetComputeRunningProcesses_v3 nvmlDeviceGetComputeRunningProcesses_v2", handle)
    used = {process["pid"]: process["usedGpuMemory"] for process in answer.get("value", ())}
    own = own_pids(used) | {each for each in used if pid is not None and is_own(each, {pid})}
    return DeviceSample(
        nvml_index=nvml_index,
        utilization_percent=utilization.get("gpu"),
        memory_used_bytes=_memory(gate, handle).get("used"),
        clock_mhz=now.clock_mhz,
        power_watts=now.power_watts,
        temperature_celsius=now.temperature_celsius,
        throttle_reasons=now.throttle_reasons,
        is_used_by_program=is_used(used, own),
        other_bytes=foreign_memory_bytes(used, own) if answer.get("value") else None,
        received_bytes_per_second=None if received is None else received * 1000,
    )


def _memory(gate: Gate, handle: Any) -> dict[str, int]:
    found = gate.ask("nvmlDeviceGetMemoryInfo", handle, MEMORY_V2).get("value")
    return found or gate.ask("nvmlDeviceGetMemoryInfo", handle).get("value") or {}


def _is_visible(device: WatchedDevice, uuid: str) -> bool:
    """Return whether the job has this device, by CUDA_VISIBLE_DEVICES."""
    chosen = [entry.strip() for entry in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if entry.strip()]
    named = [entry for entry in chosen if entry == str(device.nvml_index) or uuid.startswith(entry)]
    return bool(named) or not chosen or chosen[0].startswith(("-", "MIG"))
