"""The state of CUDA in this process: its GPUs with their memory and clocks, and the error that poisoned it."""

from __future__ import annotations

import os
import sys
import threading
import time
import warnings
import weakref
from types import SimpleNamespace
from typing import Any

from . import machine
from .allocator import MIB, Allocator, Block, NoMemory

ADVICE = """
CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.
For debugging consider passing CUDA_LAUNCH_BLOCKING=1
"""
FULL = (
    "CUDA out of memory. Tried to allocate {wanted}. GPU {index} has a total capacity of {total} of which {free} is "
    "free. Including non-PyTorch memory, this process has {reserved} memory in use. Of the allocated memory "
    "{allocated} is allocated by PyTorch, and {cached} is reserved by PyTorch but unallocated. If reserved but "
    "unallocated memory is large try setting PYTORCH_ALLOC_CONF=expandable_segments:True to avoid fragmentation."
)


class Memory:
    """What the tensors on one storage have of a GPU; freed with the last of them."""

    def __init__(self, gpu: Gpu, size: int) -> None:
        self._gpu, self._block = gpu, gpu.allocate(size)

    def __del__(self) -> None:
        if hasattr(self, "_block"):
            self._gpu.allocator.free(self._block)


class Gpu:
    """One GPU as this process uses it. index: among the visible ones; physical: among all."""

    def __init__(self, index: int, physical: int) -> None:
        self.index, self.physical = index, physical
        facts = machine.MACHINE["gpus"][physical]
        self.capability: tuple[int, int] = tuple(facts["capability"])
        self.total = int(facts["memory_bytes"])
        self.properties = SimpleNamespace(
            name=facts["name"],
            uuid=facts["uuid"].partition("-")[2],
            major=self.capability[0],
            minor=self.capability[1],
            total_memory=self.total,
            multi_processor_count=108,
            max_threads_per_multi_processor=2048,
            warp_size=32,
            L2_cache_size=40 * MIB,
            is_integrated=0,
            is_multi_gpu_board=0,
            shared_memory_per_block=49152,
            regs_per_multiprocessor=65536,
            gcnArchName="",
            pci_domain_id=0,
            pci_bus_id=physical + 1,
            pci_device_id=0,
        )
        self._context_bytes = int(machine.MACHINE["context_bytes"])
        self.allocator = Allocator(self.total, self.free_bytes, self._publish)
        self._memories: weakref.WeakValueDictionary[int, Memory] = weakref.WeakValueDictionary()
        self._ready_at: dict[int, float] = {}
        """Stream → when it will have done its work."""
        self._generator: Any = None
        self.runs = any(
            name.startswith("sm_")
            and divmod(int(name[3:]), 10)[0] == self.capability[0]
            and divmod(int(name[3:]), 10)[1] <= self.capability[1]
            for name in machine.MACHINE["architectures"]
        )

    @property
    def device(self) -> Any:
        return sys.modules["torch"].device("cuda", self.index)

    @property
    def generator(self) -> Any:
        """Return the generator of random numbers, made when torch has been imported."""
        if self._generator is None:
            self._generator = sys.modules["torch"].Generator()
        return self._generator

    def free_bytes(self) -> int:
        """Return what nobody has of it."""
        own = self.allocator.reserved.current + self._context_bytes
        return max(self.total - own - machine.used_by_others(self.physical), 0)

    def _publish(self, size: int) -> None:
        machine.publish(self.physical, size + self._context_bytes)

    def allocate(self, size: int) -> Block:
        """Return a block. Raises torch's OutOfMemoryError."""
        try:
            return self.allocator.allocate(size)
        except NoMemory:
            raise sys.modules["torch"].OutOfMemoryError(self._full(size)) from None

    def _full(self, size: int) -> str:
        reserved, allocated = self.allocator.reserved.current, self.allocator.allocated.current
        sizes = {
            "wanted": size,
            "total": self.total,
            "free": self.free_bytes(),
            "reserved": reserved + self._context_bytes,
            "allocated": allocated,
            "cached": reserved - allocated,
        }
        return FULL.format(index=self.index, **{name: _shown(value) for name, value in sizes.items()})

    def memory_of(self, host: Any) -> Memory | None:
        """Return what the storage of a tensor has, allocated now unless a tensor on it is there already."""
        storage = host.untyped_storage()
        size = storage.nbytes()
        if not size:
            return None
        memory = self._memories.get(storage._cdata)
        if memory is None:
            memory = self._memories[storage._cdata] = Memory(self, size)
        return memory

    def ready_at(self, stream: int) -> float:
        """Return when a stream will have done its work: now if it has."""
        return max(self._ready_at.get(stream, 0.0), time.perf_counter())

    def work(self, seconds: float, stream: int | None = None) -> None:
        """Give a stream work, the current one if None."""
        chosen = CONTEXT.stream(self.index) if stream is None else stream
        if seconds:
            self._ready_at[chosen] = self.ready_at(chosen) + seconds

    def delay(self, stream: int, until: float) -> None:
        """Let a stream begin its next work no earlier."""
        self._ready_at[stream] = max(self._ready_at.get(stream, 0.0), until)

    def wait(self, stream: int | None = None) -> None:
        """Wait for a stream, or for all; raise what has gone wrong meanwhile."""
        wanted = self._ready_at.values() if stream is None else [self._ready_at.get(stream, 0.0)]
        time.sleep(max(max(wanted, default=0.0) - time.perf_counter(), 0.0))
        CONTEXT.report()


class Context:
    """All GPUs of this process."""

    def __init__(self) -> None:
        self.gpus = [Gpu(index, physical) for index, physical in enumerate(machine.visible())]
        self.process = 0
        """Number of the process that has started CUDA; 0 if none has."""
        self.sync_debug_mode = 0
        self.kernels: list[tuple[str, float, float]] | None = None
        """Operators that ran, with begin and end, while somebody profiles them."""
        self._error = ""
        self._is_reported = False
        self._local = threading.local()

    @property
    def current(self) -> int:
        """Index of the GPU that this thread uses."""
        return getattr(self._local, "current", 0)

    def use(self, index: int) -> int:
        """Let this thread use a GPU; return the one that it has used. Raises: there is no such GPU."""
        before = self.current
        if index >= len(self.gpus):
            raise error("invalid device ordinal")
        if index >= 0:
            self._local.current = index
        return before

    def gpu(self, index: int | None = None) -> Gpu:
        """Return a GPU, the current one if None or negative."""
        return self.gpus[self.current if index is None or index < 0 else index]

    def stream(self, index: int) -> int:
        """Return the current stream of a GPU, in this thread."""
        return int(getattr(self._local, "streams", {}).get(index, 0))

    def use_stream(self, index: int, stream: int) -> None:
        """Let this thread use a stream of a GPU."""
        self._local.streams = {**getattr(self._local, "streams", {}), index: stream}

    def poison(self, message: str) -> None:
        """Let an error of the device come to light at the next synchronisation, and then in every call."""
        self._error = self._error or message
        if os.environ.get("CUDA_LAUNCH_BLOCKING") == "1":
            self.report()

    def report(self) -> None:
        """Raise the error of the device, if there is one."""
        if self._error:
            self._is_reported = True
            raise error(self._error)

    def refuse(self) -> None:
        """Raise the error of the device again once it has come to light: nothing works any longer."""
        if self._is_reported:
            self.report()

    def synchronizes(self) -> None:
        """Report that an operator waits for the device, as `torch.cuda.set_sync_debug_mode` asks for."""
        if self.sync_debug_mode == 1:
            warnings.warn("called a synchronizing CUDA operation", UserWarning, stacklevel=2)
        elif self.sync_debug_mode == 2:
            raise RuntimeError("called a synchronizing CUDA operation")

    def start(self) -> None:
        """Start CUDA. Raises RuntimeError: it does not start, or there is no GPU."""
        if machine.MACHINE["init_error"]:
            raise RuntimeError(machine.MACHINE["init_error"])
        if not self.gpus:
            raise RuntimeError("No CUDA GPUs are available")
        if machine.MACHINE["busy"]:
            raise error("all CUDA-capable devices are busy or unavailable")
        self.process = os.getpid()
        gpu = self.gpu()
        gpu.allocator.publish(0)


def error(text: str) -> Exception:
    """Return an error of the CUDA runtime, as torch raises it."""
    found: Exception = sys.modules["torch"].AcceleratorError(f"CUDA error: {text}{ADVICE}")
    return found


def _shown(size: int) -> str:
    return f"{size / 2**30:.2f} GiB" if size >= 2**30 else f"{size / MIB:.2f} MiB"


CONTEXT = Context()
kernel_seconds = float(machine.MACHINE["kernel_seconds"])
