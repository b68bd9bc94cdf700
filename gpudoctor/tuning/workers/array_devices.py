"""The clock and the memory of a device of CuPy."""

import gc
from contextlib import suppress
from typing import Any

import cupy

from gpudoctor.tuning.workers.conditions import open_monitor
from gpudoctor.tuning.workers.devices import NEARLY_FULL, MemoryUse, QueuedGpu


class Cupy(QueuedGpu):
    """A GPU as CuPy uses it. Its pool never shrinks by itself, so that what it holds in the end is the peak."""

    def __init__(self, index: int, pynvml_path: str | None) -> None:
        self.name = f"cuda:{index}"
        self._device = cupy.cuda.Device(index)
        self._device.use()
        self._pool = cupy.get_default_memory_pool()
        self.monitor = open_monitor(uuid=None, pci_bus_id=self._device.pci_bus_id, module_path=pynvml_path)

    def memory_use(self) -> MemoryUse:
        self.synchronize()
        gc.collect()
        held = int(self._pool.total_bytes())
        return MemoryUse(peak_bytes=held, resident_bytes=int(self._pool.used_bytes()), reserved_bytes=held)

    def synchronize(self) -> None:
        self._device.synchronize()

    def new_event(self) -> Any:
        return cupy.cuda.Event()

    def milliseconds_between(self, before: Any, after: Any) -> float:
        return float(cupy.cuda.get_elapsed_time(before, after))

    def limit_memory(self, limit_bytes: int) -> None:
        self._pool.set_limit(size=limit_bytes)

    def is_full(self) -> bool:
        with suppress(Exception):  # after an error of the device no question is answered
            free, total = self._device.mem_info
            limit = self._pool.get_limit() or total
            return bool(free < NEARLY_FULL * total or limit - self._pool.total_bytes() < NEARLY_FULL * limit)
        return False

    def free_memory(self) -> None:
        """Empty the pool and the cache of FFT plans, whose work areas are device memory too."""
        gc.collect()
        with suppress(AttributeError):
            cupy.fft.config.get_plan_cache().clear()
        self._pool.free_all_blocks()
