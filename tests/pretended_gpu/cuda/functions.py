"""The functions and classes of `torch._C` that a CUDA build has, and a CPU build lacks."""

from __future__ import annotations

import itertools
import os
import time
from types import SimpleNamespace
from typing import Any

from . import machine
from .context import CONTEXT

CUDA_TYPE = 1
"""Of a device, in c10/core/DeviceType.h."""
CUDNN_VERSION = (9, 10, 2)
_numbers = itertools.count(1)


class StreamBase:
    """A queue of work on a device."""

    def __new__(
        cls, priority: int = 0, stream_id: int | None = None, device_index: int | None = None, device_type: int = 1
    ) -> StreamBase:
        stream = super().__new__(cls)
        stream.priority, stream.device_type = priority, device_type
        stream.device_index = CONTEXT.current if device_index is None else device_index
        stream.stream_id = stream.cuda_stream = next(_numbers) if stream_id is None else stream_id
        return stream

    priority: int
    stream_id: int
    cuda_stream: int
    device_index: int
    device_type: int

    @property
    def device(self) -> Any:
        return CONTEXT.gpu(self.device_index).device

    def query(self) -> bool:
        return CONTEXT.gpu(self.device_index).ready_at(self.stream_id) <= time.perf_counter()

    def synchronize(self) -> None:
        CONTEXT.gpu(self.device_index).wait(self.stream_id)

    def __eq__(self, other: object) -> bool:
        own = (self.stream_id, self.device_index)
        return isinstance(other, StreamBase) and own == (other.stream_id, other.device_index)

    def __hash__(self) -> int:
        return hash((self.stream_id, self.device_index))


class EventBase:
    """A moment in a stream."""

    def __new__(cls, enable_timing: bool = False, **_: Any) -> EventBase:
        event = super().__new__(cls)
        event.enable_timing, event.at, event.device_index = enable_timing, None, -1
        event.cuda_event = next(_numbers)
        return event

    enable_timing: bool
    at: float | None
    device_index: int
    cuda_event: int

    @property
    def device(self) -> Any:
        return None if self.at is None else CONTEXT.gpu(self.device_index).device

    def record(self, stream: StreamBase) -> None:
        CONTEXT.refuse()
        self.device_index = stream.device_index
        self.at = CONTEXT.gpu(stream.device_index).ready_at(stream.stream_id)

    def wait(self, stream: StreamBase) -> None:
        CONTEXT.gpu(stream.device_index).delay(stream.stream_id, self.at or 0.0)

    def query(self) -> bool:
        return self.at is None or self.at <= time.perf_counter()

    def synchronize(self) -> None:
        time.sleep(max((self.at or 0.0) - time.perf_counter(), 0.0))
        CONTEXT.report()

    def elapsed_time(self, end: EventBase) -> float:
        CONTEXT.refuse()
        if not self.enable_timing or not end.enable_timing:
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if self.at is None or end.at is None:
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        if not end.query():
            raise RuntimeError("CUDA error: device not ready")
        return (end.at - self.at) * 1000


class _Functions:
    """Each is `torch._C._cuda_<its name>`."""

    def getDeviceCount(self) -> int:  # noqa: N802 - torch's own names, here and below
        return 0 if machine.MACHINE["init_error"] else len(CONTEXT.gpus)

    def isInBadFork(self) -> bool:  # noqa: N802
        return CONTEXT.process not in (0, os.getpid())

    def getArchFlags(self) -> str:  # noqa: N802
        return " ".join(machine.MACHINE["architectures"])

    def getDevice(self) -> int:  # noqa: N802
        return CONTEXT.current

    def setDevice(self, index: int) -> None:  # noqa: N802
        CONTEXT.use(index)

    def exchangeDevice(self, index: int) -> int:  # noqa: N802
        return CONTEXT.use(index) if index >= 0 else -1

    def maybeExchangeDevice(self, index: int) -> int:  # noqa: N802
        return self.exchangeDevice(index)

    def canDeviceAccessPeer(self, _device: int, _peer: int) -> bool:  # noqa: N802
        return False

    def synchronize(self) -> None:
        CONTEXT.gpu().wait()

    def sleep(self, cycles: int) -> None:
        CONTEXT.gpu().work(cycles / 1e9)

    def set_sync_debug_mode(self, mode: int) -> None:
        CONTEXT.sync_debug_mode = mode

    def get_sync_debug_mode(self) -> int:
        return CONTEXT.sync_debug_mode

    def getCurrentStream(self, index: int) -> tuple[int, int, int]:  # noqa: N802
        return CONTEXT.stream(index), index, CUDA_TYPE

    def getCurrentRawStream(self, index: int) -> int:  # noqa: N802
        return CONTEXT.stream(index)

    def getDefaultStream(self, index: int) -> tuple[int, int, int]:  # noqa: N802
        return 0, index, CUDA_TYPE

    def setStream(self, *, stream_id: int, device_index: int, device_type: int) -> None:  # noqa: N802
        CONTEXT.use(device_index)
        CONTEXT.use_stream(device_index, stream_id)

    def emptyCache(self) -> None:  # noqa: N802
        CONTEXT.refuse()
        for gpu in CONTEXT.gpus:
            gpu.allocator.empty_cache()

    def memoryStats(self, index: int) -> dict[str, Any]:  # noqa: N802
        return CONTEXT.gpu(index).allocator.statistics()

    def resetPeakMemoryStats(self, index: int) -> None:  # noqa: N802
        CONTEXT.gpu(index).allocator.reset_peaks()

    def setMemoryFraction(self, fraction: float, index: int) -> None:  # noqa: N802
        gpu = CONTEXT.gpu(index)
        gpu.allocator.limit = int(fraction * gpu.total)

    def getMemoryFraction(self, index: int) -> float:  # noqa: N802
        gpu = CONTEXT.gpu(index)
        return gpu.allocator.limit / gpu.total

    def isCurrentStreamCapturing(self) -> bool:  # noqa: N802
        return False

    def get_cudnn_benchmark_limit(self) -> int:
        return 10

    def set_cudnn_benchmark_limit(self, limit: int) -> None:
        """cuDNN is not there: nothing is tried."""

    def getAllocatorBackend(self) -> str:  # noqa: N802
        return "native"

    def ipc_collect(self) -> None:
        """Nothing is shared between processes."""


def _memory_info(index: int) -> tuple[int, int]:
    CONTEXT.refuse()
    gpu = CONTEXT.gpu(index)
    return gpu.free_bytes(), gpu.total


def add_functions(extension: Any) -> None:
    """Give `torch._C` what the modules that are imported after it look for."""
    functions = _Functions()
    for name in dir(_Functions):
        if not name.startswith("_"):
            setattr(extension, f"_cuda_{name}", getattr(functions, name))
    extension._has_cuda = extension._has_cudnn = True
    extension._CudaStreamBase, extension._CudaEventBase = StreamBase, EventBase
    extension._CudaDeviceProperties = SimpleNamespace
    extension._CUDAGraph = extension._graph_pool_handle = extension._cuda_CUDAAllocator_AllocatorState = object
    extension._cudart = SimpleNamespace(cudaMemGetInfo=_memory_info)
    major, minor, patch = CUDNN_VERSION
    extension._cudnn = SimpleNamespace(
        getVersionInt=lambda: major * 10000 + minor * 100 + patch,
        getRuntimeVersion=lambda: CUDNN_VERSION,
        getCompileVersion=lambda: CUDNN_VERSION,
        is_cuda=True,
    )


def finish(torch: Any) -> None:
    """Add what sets attributes of `torch.cuda` when CUDA starts."""

    def start() -> None:
        CONTEXT.start()
        torch.cuda.default_generators = tuple(gpu.generator for gpu in CONTEXT.gpus)
        torch.cuda._get_device_properties = lambda index: CONTEXT.gpu(index).properties

    torch._C._cuda_init = start
