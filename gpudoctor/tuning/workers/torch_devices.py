"""The clock and the memory of the devices of torch: CUDA (and ROCm, which has the same names) and MPS."""

import gc
from contextlib import suppress
from typing import Any

import torch

from gpudoctor.tuning.workers.conditions import Monitor, open_monitor
from gpudoctor.tuning.workers.devices import NEARLY_FULL, Device, Host, MemoryUse, QueuedGpu


def open_device(name: str, pynvml_path: str | None) -> Device:
    """Return the device that torch calls `name`."""
    if name.startswith("cuda:"):
        return Cuda(int(name.partition(":")[2]), pynvml_path)
    return Mps() if name == "mps" else Host()


class Cuda(QueuedGpu):
    """An NVIDIA or AMD GPU."""

    def __init__(self, index: int, pynvml_path: str | None) -> None:
        self.name = f"cuda:{index}"
        self._index = index
        torch.cuda.set_device(index)
        torch.cuda.init()
        self.monitor = _monitor(index, pynvml_path)
        self._limit_bytes = torch.cuda.get_device_properties(index).total_memory
        self._retries = 0

    def begin(self) -> None:
        self.free_memory()
        torch.cuda.reset_peak_memory_stats(self._index)
        self._retries = self._allocation_retries()

    def memory_use(self) -> MemoryUse:
        self.synchronize()
        gc.collect()
        return MemoryUse(
            peak_bytes=int(torch.cuda.max_memory_allocated(self._index)),
            resident_bytes=int(torch.cuda.memory_allocated(self._index)),
            reserved_bytes=int(torch.cuda.max_memory_reserved(self._index)),
            allocation_retries=self._allocation_retries() - self._retries,
        )

    def synchronize(self) -> None:
        torch.cuda.synchronize(self._index)

    def new_event(self) -> Any:
        return torch.cuda.Event(enable_timing=True)

    def milliseconds_between(self, before: Any, after: Any) -> float:
        return float(before.elapsed_time(after))

    def limit_memory(self, limit_bytes: int) -> None:
        total = torch.cuda.get_device_properties(self._index).total_memory
        self._limit_bytes = min(limit_bytes, total)
        torch.cuda.set_per_process_memory_fraction(self._limit_bytes / total, self._index)

    def is_full(self) -> bool:
        with suppress(Exception):  # after an error of the device no question is answered
            free, total = torch.cuda.mem_get_info(self._index)
            left = self._limit_bytes - torch.cuda.memory_reserved(self._index)
            return bool(free < NEARLY_FULL * total or left < NEARLY_FULL * self._limit_bytes)
        return False

    def free_memory(self) -> None:
        gc.collect()
        torch.cuda.empty_cache()

    def _allocation_retries(self) -> int:
        return int(torch.cuda.memory_stats(self._index).get("num_alloc_retries", 0))


def _monitor(index: int, pynvml_path: str | None) -> Monitor | None:
    """Return the monitor of the device; torch counts the visible devices, so that its index is not NVML's."""
    if torch.version.hip is not None:
        return None
    properties = torch.cuda.get_device_properties(index)
    uuid, pci = getattr(properties, "uuid", None), None
    if uuid is not None:
        prefix = "MIG-" if " MIG " in str(properties.name) else "GPU-"
        uuid = prefix + str(uuid).removeprefix(prefix)
    with suppress(AttributeError):  # torch has not always known the place on the bus: "00000000:01:00.0"
        pci = f"{properties.pci_domain_id:08X}:{properties.pci_bus_id:02X}:{properties.pci_device_id:02X}.0"
    return open_monitor(uuid=uuid, pci_bus_id=pci, module_path=pynvml_path)


class Mps(Device):
    """An Apple GPU. Its allocator records no peak, so the driver's memory is used instead."""

    kind = "mps"
    name = "mps"

    def memory_use(self) -> MemoryUse:
        """Return Metal's memory for this process: it shrinks only when the cache is emptied, so it is a peak."""
        self.synchronize()
        gc.collect()
        held = int(torch.mps.driver_allocated_memory())
        return MemoryUse(peak_bytes=held, resident_bytes=int(torch.mps.current_allocated_memory()), reserved_bytes=held)

    def synchronize(self) -> None:
        torch.mps.synchronize()

    def limit_memory(self, limit_bytes: int) -> None:
        with suppress(AttributeError):
            most = int(torch.mps.recommended_max_memory())
            torch.mps.set_per_process_memory_fraction(min(limit_bytes / most, 1.0))

    def is_full(self) -> bool:
        """Return whether the memory that Metal recommends at most is nearly used."""
        with suppress(Exception):
            most = int(torch.mps.recommended_max_memory())
            return int(torch.mps.driver_allocated_memory()) > (1 - NEARLY_FULL) * most
        return False

    def free_memory(self) -> None:
        gc.collect()
        torch.mps.empty_cache()
