"""What NVML says about the device while it is measured: clocks, power, what lowers them, who else is there.

Without pynvml, or on a device that NVML does not know, every value is unknown.
"""

import os
from typing import Any

from gpudoctor.model.tuning import Conditions
from gpudoctor.nvml import EVENT_REASONS, GPU, SM, is_own, open_nvml

NO_THROTTLE = {"gpu_idle", "applications_clocks_setting", "display_clock_setting", "sync_boost", "sw_power_cap"}
"""Reasons that lower no clock below what its owner has set; under full load every GPU runs at its power limit."""

_VALUE_NOT_AVAILABLE = 2**63


class Monitor:
    """Asks NVML about one device."""

    def __init__(self, gate: Any, handle: Any) -> None:
        self._gate = gate
        self._handle = handle

    def conditions(self) -> Conditions:
        """Return what the device does at this moment."""
        power = self._number("nvmlDeviceGetPowerUsage")
        return Conditions(
            clock_mhz=self._number("nvmlDeviceGetClockInfo", SM),
            power_watts=None if power is None else power / 1000,
            temperature_celsius=self._number("nvmlDeviceGetTemperatureV nvmlDeviceGetTemperature", GPU),
            throttle_reasons=self._throttle_reasons(),
            foreign_memory_bytes=self._foreign_memory_bytes(),
        )

    def driver_version(self) -> str | None:
        """Return the driver version."""
        answer = self._gate.ask("nvmlSystemGetDriverVersion").get("value")
        return answer if isinstance(answer, str) else None

    def _number(self, functions: str, *arguments: Any) -> int | None:
        answer = self._gate.ask(functions, self._handle, *arguments).get("value")
        return answer if isinstance(answer, int) and 0 <= answer < _VALUE_NOT_AVAILABLE else None

    def _throttle_reasons(self) -> tuple[str, ...] | None:
        mask = self._number("nvmlDeviceGetCurrentClocksEventReasons nvmlDeviceGetCurrentClocksThrottleReasons")
        if mask is None:
            return None
        return tuple(name for bit, name in EVENT_REASONS.items() if mask & bit and name not in NO_THROTTLE)

    def _foreign_memory_bytes(self) -> int | None:
        names = (f"nvmlDeviceGet{kind}RunningProcesses" for kind in ("Compute", "Graphics"))
        answers = [self._gate.ask_list(f"{name}_v3 {name}_v2", self._handle) for name in names]
        listed = [answer["value"] for answer in answers if "value" in answer]
        if not listed:
            return None
        used = {process["pid"]: process["usedGpuMemory"] for processes in listed for process in processes}
        return foreign_memory_bytes(used, own_pids(used))


def foreign_memory_bytes(used: dict[int, int | None], own: set[int]) -> int | None:
    """Return the memory of the processes that are not our own; None if that is unknown.

    used: process id → bytes, None if NVML does not say. In a container NVML gives the ids of the host, so that our
    own process is not among them: then one process alone is ours (https://github.com/NVIDIA/nvidia-docker/issues/1483).
    """
    if used and not own:
        return 0 if len(used) == 1 else None
    foreign = [held for pid, held in used.items() if pid not in own]
    if any(held is None for held in foreign):
        return None
    return sum(held or 0 for held in foreign)


def own_pids(pids: Any) -> set[int]:
    """Return those of `pids` that are this process, its parent, or were started by them: other workers of the run."""
    family = {os.getpid(), os.getppid()}
    return {pid for pid in pids if is_own(pid, family)}


def open_monitor(*, uuid: str | None, pci_bus_id: str | None, module_path: str | None = None) -> Monitor | None:
    """Return a monitor of the device; None if NVML or its module is missing, or does not know the device.

    uuid: with its prefix, "GPU-..." or "MIG-...". pci_bus_id: "0000:01:00.0".
    module_path: of pynvml, for an environment that has none of its own.
    """
    gate, _ = open_nvml(module_path)
    if gate is None:
        return None
    named = (("nvmlDeviceGetHandleByUUID", uuid), ("nvmlDeviceGetHandleByPciBusId", pci_bus_id))
    ways: list[tuple[str, bytes | int]] = [(function, name.encode()) for function, name in named if name]
    if uuid is None and pci_bus_id is None and gate.ask("nvmlDeviceGetCount").get("value") == 1:
        ways = [("nvmlDeviceGetHandleByIndex", 0)]  # older libraries say nothing that names their device
    for function, argument in ways:
        handle, failure = gate.call(function, argument)
        if failure is None:
            return Monitor(gate, handle)
    return None
