"""What autograd, pinning and `torch.accelerator` ask of CUDA in C++: answers put into the tables of virtual functions.

A CPU build of torch 2.13 knows CUDA by two objects: the guard of its devices, of which it has none, and the hooks,
which say that there is no CUDA. Both get a copy of a table of their class, with some functions replaced by those below.
Reference: c10/core/impl/DeviceGuardImplInterface.h, ATen/detail/AcceleratorHooksInterface.h, CUDAHooksInterface.h.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from .context import CONTEXT
from .functions import CUDA_TYPE

WORD = ctypes.sizeof(ctypes.c_void_p)
HEADER = 2
"""Words before the first function of a table."""

_Function = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)

GUARD_FUNCTIONS, GUARD_DEVICE_COUNT = 26, 15
HOOK_FUNCTIONS = 60
(BUILT, AVAILABLE, HAS_CONTEXT, INIT, COUNT, SET, GET, EXCHANGE, MAYBE_EXCHANGE, IS_PINNED, PINNING) = range(2, 13)
HAS_CUDA = 16

_kept: list[Any] = []
"""Tables and functions, which must live as long as the process."""
_pinned: dict[int, int] = {}
"""Address → bytes of memory that is pinned."""


def install(torch: Any) -> None:
    """Let CUDA have the visible GPUs, or none."""
    folder = Path(torch.__file__).parent / "lib"
    c10, aten = (ctypes.CDLL(str(folder / name)) for name in ("libc10.so", "libtorch_cpu.so"))
    count = len(CONTEXT.gpus)
    _set_guard(torch, c10, count)
    if count:
        _set_hooks(c10, aten, count)
        _track_pinning(torch)


def _set_guard(torch: Any, c10: ctypes.CDLL, count: int) -> None:
    """Have torch make its guard that does nothing, which it does where a guard has no devices; give it a count."""
    registry = (ctypes.c_void_p * (CUDA_TYPE + 1)).in_dll(c10, "_ZN3c104impl26device_guard_impl_registryE")
    empty = [0] * GUARD_FUNCTIONS
    registry[CUDA_TYPE] = _object_with(_table([0] * HEADER + empty, {GUARD_DEVICE_COUNT: lambda _this, _index: 0}))
    torch._C._ensureCUDADeviceGuardSet()
    table = _copied(registry[CUDA_TYPE] or 0, GUARD_FUNCTIONS)
    registry[CUDA_TYPE] = _object_with(_table(table, {GUARD_DEVICE_COUNT: lambda _this, _index: count}))


def _set_hooks(c10: ctypes.CDLL, aten: ctypes.CDLL, count: int) -> None:
    get_hooks, get_allocator = aten._ZN2at6detail12getCUDAHooksEv, c10._ZN3c1015GetCPUAllocatorEv
    get_hooks.restype = get_allocator.restype = ctypes.c_void_p
    hooks = ctypes.c_void_p.from_address(get_hooks())
    yes = {number: lambda _this, _index: 1 for number in (BUILT, AVAILABLE, HAS_CONTEXT, HAS_CUDA)}
    functions: dict[int, Callable[[int, int], int]] = {
        **yes,
        INIT: lambda _this, _index: 0,
        COUNT: lambda _this, _index: count,
        SET: lambda _this, index: CONTEXT.use(_int8(index)),
        GET: lambda _this, _index: CONTEXT.current,
        EXCHANGE: lambda _this, index: CONTEXT.use(_int8(index)),
        MAYBE_EXCHANGE: lambda _this, index: CONTEXT.use(_int8(index)),
        IS_PINNED: lambda _this, address: _is_pinned(address),
        PINNING: lambda _this, _index: get_allocator(),
    }
    address = ctypes.addressof(hooks)
    hooks.value = ctypes.addressof(_table(_copied(address, HOOK_FUNCTIONS), functions)) + HEADER * WORD


def _copied(address: int, count: int) -> list[int]:
    """Return the table of the object at an address, from its header on."""
    first = ctypes.c_void_p.from_address(address).value or 0
    return [word or 0 for word in (ctypes.c_void_p * (HEADER + count)).from_address(first - HEADER * WORD)]


def _table(words: list[int], functions: Mapping[int, Callable[[int, int], int]]) -> Any:
    table = (ctypes.c_void_p * len(words))(*words)
    for number, function in functions.items():
        called = _Function(function)
        _kept.append(called)
        table[HEADER + number] = ctypes.cast(called, ctypes.c_void_p).value
    _kept.append(table)
    return table


def _object_with(table: Any) -> int:
    """Return the address of an object that has nothing but its table."""
    made = ctypes.c_void_p(ctypes.addressof(table) + HEADER * WORD)
    _kept.append(made)
    return ctypes.addressof(made)


def _int8(number: int) -> int:
    return ctypes.c_int8(number).value


def _is_pinned(address: int) -> bool:
    return any(first <= address < first + size for first, size in list(_pinned.items()))


def _track_pinning(torch: Any) -> None:
    """Remember the memory that is pinned: it comes from the allocator of the CPU."""
    pin_memory = torch.Tensor.pin_memory

    def pin(tensor: Any, *arguments: Any, **options: Any) -> Any:
        pinned = pin_memory(tensor, *arguments, **options)
        storage = pinned.untyped_storage()
        if pinned.device.type == "cpu" and storage.nbytes() and storage.data_ptr() not in _pinned:
            _pinned[storage.data_ptr()] = storage.nbytes()
            weakref.finalize(storage, _pinned.pop, storage.data_ptr(), None)
        return pinned

    torch.Tensor.pin_memory = pin
