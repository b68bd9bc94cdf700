"""The clock and the memory of a device, as trials use them: one class for each kind of device.

This module knows the host, for torch on the CPU and for NumPy, and the GPU of CuPy; it imports neither library.
"""

import gc
import itertools
import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib import import_module
from typing import Any

from gpudoctor.model.record import record
from gpudoctor.model.tuning import Conditions
from gpudoctor.nvml import read_start
from gpudoctor.tuning.workers.conditions import open_monitor
from gpudoctor.worker import descendants

NEARLY_FULL = 0.05
"""Of the memory that the process may use: with less left, a library that fails has most likely got no workspace."""


@record
class MemoryUse:
    """What the trial used since `begin`, in bytes; None if that is not known."""

    peak_bytes: int | None = None
    resident_bytes: int | None = None
    reserved_bytes: int | None = None
    allocation_retries: int = 0


class Device:
    """A device as one worker uses it. By itself it is one without a queue, without sensors and without a limit."""

    kind = name = "cpu"
    """"cuda", "cpu" or "mps"; the name is as torch writes it: "cuda:0"."""

    def begin(self) -> None:
        """Free what earlier trials left, and begin to watch the peak of the memory."""
        self.free_memory()

    def memory_use(self) -> MemoryUse:
        """Return what was used since `begin`. Whoever wants to know what is resident frees the batch first."""
        return MemoryUse()

    def synchronize(self) -> None:
        """Wait until the device has done all that it was given."""

    def time_steps(self, step: Callable[[], object], count: int, deadline: float) -> tuple[list[float], Conditions]:
        """Do `count` steps; return the seconds of each, and the conditions at their end.

        On a device with a queue they are all queued, and waited for once: waiting for each would time the launches.
        deadline: of time.perf_counter(); a device without a queue starts no step after it, except the first.
        """
        return timed_one_by_one(step, count, deadline, self.synchronize), self.conditions()

    def conditions(self) -> Conditions:
        """Return what the device does at this moment."""
        return Conditions()

    def driver_version(self) -> str | None:
        """Return the version of NVIDIA's driver."""
        return None

    def limit_memory(self, limit_bytes: int) -> None:
        """Let the process have no more than that, from now on: beyond it, the library says that memory is full."""

    def is_full(self) -> bool:
        """Return whether next to nothing is left of what the process may use."""
        return False

    def free_memory(self) -> None:
        """Give back what nothing refers to any longer."""
        gc.collect()


class QueuedGpu(Device):
    """A GPU that works through a queue; NVML reports its conditions if there is a monitor."""

    kind = "cuda"
    monitor: Any

    def new_event(self) -> Any:
        """Return an event of the library, which takes the time at its place in the queue."""
        raise NotImplementedError

    def milliseconds_between(self, before: Any, after: Any) -> float:
        """Return the time between two events that the device has reached."""
        raise NotImplementedError

    def time_steps(
        self,
        step: Callable[[], object],
        count: int,
        deadline: float,  # noqa: ARG002 - all of them are queued at once
    ) -> tuple[list[float], Conditions]:
        """Queue the steps with an event after each, read the conditions while they run, and wait once."""
        events = [self.new_event() for _ in range(count + 1)]
        events[0].record()
        for event in events[1:]:
            step()
            event.record()
        conditions = self.conditions()
        self.synchronize()
        return [self.milliseconds_between(*pair) / 1000 for pair in itertools.pairwise(events)], conditions

    def conditions(self) -> Conditions:
        return Conditions() if self.monitor is None else self.monitor.conditions()

    def driver_version(self) -> str | None:
        return None if self.monitor is None else self.monitor.driver_version()


class Cupy(QueuedGpu):
    """A GPU as CuPy uses it. Its pool never shrinks by itself, so its size at the end is the peak."""

    def __init__(self, index: int, pynvml_path: str | None) -> None:
        self._cupy: Any = import_module("cupy")
        self.name = f"cuda:{index}"
        self._device = self._cupy.cuda.Device(index)
        self._device.use()
        self._pool = self._cupy.get_default_memory_pool()
        self.monitor = open_monitor(uuid=None, pci_bus_id=self._device.pci_bus_id, module_path=pynvml_path)

    def memory_use(self) -> MemoryUse:
        self.synchronize()
        gc.collect()
        held = int(self._pool.total_bytes())
        return MemoryUse(peak_bytes=held, resident_bytes=int(self._pool.used_bytes()), reserved_bytes=held)

    def synchronize(self) -> None:
        self._device.synchronize()

    def new_event(self) -> Any:
        return self._cupy.cuda.Event()

    def milliseconds_between(self, before: Any, after: Any) -> float:
        return float(self._cupy.cuda.get_elapsed_time(before, after))

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
            self._cupy.fft.config.get_plan_cache().clear()
        self._pool.free_all_blocks()


class Host(Device):
    """The processor and its memory."""

    def __init__(self) -> None:
        self._base_bytes = _status_bytes("VmRSS") or 0
        self._watched = False
        self._limit_bytes: int | None = None

    def begin(self) -> None:
        super().begin()
        self._watched = _reset_peak()

    def memory_use(self) -> MemoryUse:
        """Return the resident memory above what the libraries themselves take, that of started processes included.

        Of those it is what they hold alone at the end: what a fork shares is not counted twice.
        """
        peak, resident = self._above_base("VmHWM"), self._above_base("VmRSS")
        if not self._watched or peak is None or resident is None:
            return MemoryUse()
        gc.collect()
        texts = (read_start(f"/proc/{pid}/smaps_rollup") for pid in descendants(os.getpid()))
        held = 1024 * sum(int(size) for text in texts for size in re.findall(r"^Private_\w+: *(\d+) kB", text, re.M))
        return MemoryUse(peak_bytes=peak + held, resident_bytes=resident + held)

    def limit_memory(self, limit_bytes: int) -> None:
        """Let an allocation fail before the kernel ends the process; on Linux only."""
        data_bytes = _status_bytes("VmData")
        if sys.platform != "linux" or data_bytes is None:
            return
        import resource

        self._limit_bytes = limit_bytes
        with suppress(OSError, ValueError):  # a lower limit is in force already
            soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
            if soft == resource.RLIM_INFINITY or data_bytes + limit_bytes < soft:
                resource.setrlimit(resource.RLIMIT_DATA, (data_bytes + limit_bytes, hard))

    def is_full(self) -> bool:
        used = self._above_base("VmRSS")
        return self._limit_bytes is not None and used is not None and used > (1 - NEARLY_FULL) * self._limit_bytes

    def _above_base(self, field: str) -> int | None:
        value = _status_bytes(field)
        return None if value is None else max(value - self._base_bytes, 0)


def timed_one_by_one(
    step: Callable[[], object], count: int, deadline: float, synchronize: Callable[[], None]
) -> list[float]:
    """Return the seconds of up to `count` steps, waiting for each; none starts after `deadline`, except the first."""
    seconds: list[float] = []
    while len(seconds) < count and (not seconds or time.perf_counter() < deadline):
        started = time.perf_counter()
        step()
        synchronize()
        seconds.append(time.perf_counter() - started)
    return seconds


def _status_bytes(field: str) -> int | None:
    """Return a size of this process; None if the system does not say. Source: /proc/self/status, in KiB."""
    match = re.search(rf"^{field}:\s*(\d+) kB", read_start("/proc/self/status"), re.MULTILINE)
    return int(match[1]) * 1024 if match else None


def _reset_peak() -> bool:
    """Let the peak of the resident memory (VmHWM) begin again; return whether the kernel did so.

    Source: clear_refs in https://docs.kernel.org/filesystems/proc.html: writing 5 resets the peak.
    """
    try:
        with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
            file.write("5")
    except OSError:
        return False
    return True


def host_memory() -> tuple[int | None, int | None]:
    """Return the bytes of memory that this process could have in all, and those that are free: None if unknown.

    The limit of a control group or of the process (`ulimit -v`) counts if it is lower than the machine's memory.
    """
    found = re.findall(r"^(MemTotal|MemAvailable):\s*(\d+) kB", read_start("/proc/meminfo"), re.MULTILINE)
    sizes = {name: int(size) * 1024 for name, size in found}
    total, free = sizes.get("MemTotal"), sizes.get("MemAvailable")
    if total is None:
        with suppress(ValueError, OSError, AttributeError):
            total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for limit, used in (*_group_limits(), *_process_limits()):
        total = limit if total is None else min(total, limit)
        free = max(limit - used, 0) if free is None else min(free, max(limit - used, 0))
    return total, free


def _process_limits() -> Iterator[tuple[int, int]]:
    """Yield limit and use, in bytes, of the address space and the data of this process, if they are limited."""
    with suppress(ImportError):  # Windows
        import resource

        for kind, field in ((resource.RLIMIT_AS, "VmSize"), (resource.RLIMIT_DATA, "VmData")):
            soft, used = resource.getrlimit(kind)[0], _status_bytes(field)
            if soft != resource.RLIM_INFINITY and used is not None:
                yield soft, used


def _group_limits() -> Iterator[tuple[int, int]]:
    """Yield limit and use, in bytes, of each control group of this process, and its parents, that limits its memory.

    Inside a container the group's own folder is the mount point.
    """
    for line in read_start("/proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if not controllers:
            mounts, names = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"], ("memory.max", "memory.current")
        elif "memory" in controllers.split(","):
            mounts, names = ["/sys/fs/cgroup/memory"], ("memory.limit_in_bytes", "memory.usage_in_bytes")
        else:
            continue
        parts = [part for part in path.split("/") if part]
        for folder in (os.path.join(mount, *parts[:depth]) for mount in mounts for depth in range(len(parts) + 1)):
            with suppress(ValueError):  # "max", or no such file
                limit, used = (int(read_start(os.path.join(folder, name))) for name in names)
                if limit < 2**62:  # version 1 writes the largest number for "no limit"
                    yield limit, used
