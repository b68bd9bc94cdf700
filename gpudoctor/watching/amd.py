"""AMD GPUs, asked through the module amdsmi of ROCm, if it is installed.

Units: https://rocm.docs.amd.com/projects/amdsmi/en/latest/doxygen/docBin/html/group__tagGPUMonitor.html. What a GPU or
a version does not support is "N/A" or an error, and so unknown. Temperatures are left out: versions differ in the unit.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from gpudoctor.tuning.workers.conditions import foreign_memory_bytes
from gpudoctor.watching.cpu_use import is_used
from gpudoctor.watching.samples import DeviceSample, WatchedDevice

MEGABYTE = 2**20
CHOSEN = ("HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")


class AmdGpus:
    """The AMD GPUs of the job; none if amdsmi is missing or does not start."""

    def __init__(self) -> None:
        self._handles: list[Any] = []
        try:
            self._smi: Any = import_module("amdsmi")
            self._smi.amdsmi_init()
            self._handles = list(self._smi.amdsmi_get_processor_handles())
        except Exception:
            return

    def devices(self) -> Iterator[tuple[WatchedDevice, Any]]:
        """Yield each GPU that the job has, with its handle."""
        for index, handle in enumerate(self._handles):
            if _is_visible(index):
                total = self._number(self._ask("amdsmi_get_gpu_vram_usage", handle), "vram_total")
                name = self._ask("amdsmi_get_gpu_asic_info", handle).get("market_name")
                clock = self._number(self._clock(handle), "max_clk")
                yield (
                    WatchedDevice(
                        nvml_index=index,
                        name=name if isinstance(name, str) and name != "N/A" else "AMD GPU",
                        memory_total_bytes=None if total is None else total * MEGABYTE,
                        clock_max_mhz=clock,
                    ),
                    handle,
                )

    def sample(self, index: int, handle: Any, own: set[int]) -> DeviceSample:
        """Return a sample of one GPU. own: process ids of the program."""
        memory = self._number(self._ask("amdsmi_get_gpu_vram_usage", handle), "vram_used")
        used = self._processes(handle)
        return DeviceSample(
            nvml_index=index,
            utilization_percent=self._number(self._ask("amdsmi_get_gpu_activity", handle), "gfx_activity"),
            memory_used_bytes=None if memory is None else memory * MEGABYTE,
            clock_mhz=self._number(self._clock(handle), "clk"),
            power_watts=self._number(self._ask("amdsmi_get_power_info", handle), "current_socket_power"),
            is_used_by_program=is_used(used, own & set(used)),
            other_bytes=foreign_memory_bytes(used, own) if used else None,
        )

    def _clock(self, handle: Any) -> dict[str, Any]:
        kind = getattr(getattr(self._smi, "AmdSmiClkType", None), "GFX", None)
        return self._ask("amdsmi_get_clock_info", handle, kind)

    def _processes(self, handle: Any) -> dict[int, int | None]:
        try:
            listed = self._smi.amdsmi_get_gpu_process_list(handle)
            return {each["pid"]: each.get("mem") for each in listed if isinstance(each.get("pid"), int)}
        except Exception:
            return {}

    def _ask(self, function: str, *arguments: Any) -> dict[str, Any]:
        try:
            answer = getattr(self._smi, function)(*arguments)
        except Exception:
            return {}
        return answer if isinstance(answer, dict) else {}

    @staticmethod
    def _number(answer: dict[str, Any], name: str) -> int | None:
        value = answer.get(name)
        return value if isinstance(value, int) and not isinstance(value, bool) else None


def _is_visible(index: int) -> bool:
    chosen = [os.environ[name] for name in CHOSEN if os.environ.get(name)]
    return all(str(index) in [entry.strip() for entry in entries.split(",")] for entries in chosen)
