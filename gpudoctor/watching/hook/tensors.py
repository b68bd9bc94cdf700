"""Tensors: calls that wait for the GPU, and clones."""

from __future__ import annotations

import functools
from typing import Any

from .copies import patch_copies
from .patching import Patching, caller_outside

SYNCHRONISING = (
    *("item", "tolist", "cpu", "__bool__", "__float__", "__int__", "__index__", "__repr__", "__format__"),
    *("__contains__", "equal", "allclose"),
)
SIZED_BY_VALUES = ("nonzero", "argwhere", "masked_select", "unique", "unique_consecutive")
"""How many elements come out, only the GPU knows."""


def patch_tensors(patching: Patching) -> None:
    """Time copies to the GPU, what waits for it, and clones."""
    tensor, cuda = patching.torch.Tensor, patching.torch.cuda
    for name in SYNCHRONISING:
        patching.replace(tensor, name, synchronising(patching, getattr(tensor, name), name))
    for name in ("clone", "__deepcopy__"):
        patching.replace(tensor, name, _cloning(patching, getattr(tensor, name)))
    for name in SIZED_BY_VALUES:
        patching.replace(tensor, name, _in_step(patching, getattr(tensor, name), name))
    for name in (*SIZED_BY_VALUES, "equal", "allclose"):
        original = getattr(patching.torch, name)
        patching.replace_function(patching.torch, name, _in_step(patching, original, f"torch.{name}"))
    for name in ("__getitem__", "__setitem__"):
        patching.replace(tensor, name, _masked(patching, getattr(tensor, name), name))
    name = "torch.cuda.synchronize"
    patching.replace(cuda, "synchronize", synchronising(patching, cuda.synchronize, name, always=True))
    patch_copies(patching, synchronising(patching, tensor.to, "to"))


def synchronising(patching: Patching, original: Any, name: str, *, always: bool = False, wrappers: int = 1) -> Any:
    """Return `original` timed as a call that waits for the GPU.

    always: also if it has no tensor. wrappers: how many there are between the caller and `original`.
    """
    recorder, is_compiling, folder = patching.recorder, patching.is_compiling, patching.places.torch_folder
    what = ("synchronising", name, 0)

    @functools.wraps(original)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if is_compiling() or recorder.is_optimizing or not recorder.is_here():
            return original(*args, **kwargs)
        if not (always or recorder.stand_in or patching.is_cuda(args[0])):
            return original(*args, **kwargs)
        caller = caller_outside(folder, wrappers)  # not what torch itself needs, such as GradScaler
        if caller is None:
            return original(*args, **kwargs)
        return patching.timed(what, caller, original, args, kwargs)

    return wrapper


def _in_step(patching: Patching, original: Any, name: str) -> Any:
    """Return `original` timed as a call that waits for the GPU if its first argument is there."""
    timed, tensor = synchronising(patching, original, name, wrappers=2), patching.torch.Tensor

    @functools.wraps(original)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        on_gpu = args and isinstance(args[0], tensor) and _is_on_gpu(patching, args[0])
        return (timed if on_gpu else original)(*args, **kwargs)

    return wrapper


def _is_on_gpu(patching: Patching, tensor: Any) -> bool:
    """Return whether a tensor is on the GPU. Those of a stand-in do not say so: before a step has sent any, none is."""
    return patching.is_cuda(tensor) or (patching.recorder.stand_in and patching.recorder.may_use_gpu())


def _masked(patching: Patching, original: Any, name: str) -> Any:
    timed = synchronising(patching, original, name, wrappers=2)
    recorder, tensor = patching.recorder, patching.torch.Tensor
    no_masks = (int, slice, type(None))
    masks = (patching.torch.bool, patching.torch.uint8)

    def is_mask(index: Any) -> bool:
        return isinstance(index, tensor) and index.dtype in masks

    @functools.wraps(original)
    def wrapper(self: Any, index: Any, *values: Any) -> Any:
        if index.__class__ in no_masks or not recorder.is_here() or not _is_on_gpu(patching, self):
            return original(self, index, *values)
        has_mask = any(map(is_mask, index)) if index.__class__ is tuple else is_mask(index)
        is_fill = bool(values) and not (isinstance(values[0], tensor) and values[0].dim())
        return (timed if has_mask and not is_fill else original)(self, index, *values)

    return wrapper


def _cloning(patching: Patching, original: Any) -> Any:
    recorder, is_compiling, folder = patching.recorder, patching.is_compiling, patching.places.torch_folder

    @functools.wraps(original)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if is_compiling() or recorder.is_optimizing or not recorder.is_here():
            return original(*args, **kwargs)
        if not (recorder.stand_in or patching.is_cuda(args[0])):
            return original(*args, **kwargs)
        caller = caller_outside(folder, 1)
        if caller is None:
            return original(*args, **kwargs)
        size = args[0].numel() * args[0].element_size()
        return patching.timed(("cloning", "clone", size), caller, original, args, kwargs)

    return wrapper
