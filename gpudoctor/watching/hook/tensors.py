"""Tensors: calls that wait for the GPU, and clones."""

from __future__ import annotations

import functools
from typing import Any

from .copies import patch_copies
from .patching import Patching, caller_outside

SYNCHRONISING = ("item", "tolist", "cpu", "__bool__", "__float__", "__int__", "__index__", "__repr__", "__format__")


def patch_tensors(patching: Patching) -> None:
    """Time copies to the GPU, what waits for it, and clones."""
    tensor, cuda = patching.torch.Tensor, patching.torch.cuda
    for name in SYNCHRONISING:
        patching.replace(tensor, name, synchronising(patching, getattr(tensor, name), name))
    for name in ("clone", "__deepcopy__"):
        patching.replace(tensor, name, _cloning(patching, getattr(tensor, name)))
    name = "torch.cuda.synchronize"
    patching.replace(cuda, "synchronize", synchronising(patching, cuda.synchronize, name, always=True))
    patch_copies(patching, synchronising(patching, tensor.to, "to"))


def synchronising(patching: Patching, original: Any, name: str, *, always: bool = False) -> Any:
    """Return `original` timed as a call that waits for the GPU. always: also if it has no tensor."""
    recorder, is_compiling, folder = patching.recorder, patching.is_compiling, patching.places.torch_folder
    what = ("synchronising", name, 0)

    @functools.wraps(original)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if is_compiling() or recorder.is_optimizing or not recorder.is_here():
            return original(*args, **kwargs)
        if not (always or recorder.stand_in or args[0].is_cuda):
            return original(*args, **kwargs)
        caller = caller_outside(folder)  # not what torch itself needs, such as GradScaler
        if caller is None:
            return original(*args, **kwargs)
        return patching.timed(what, caller, original, args, kwargs)

    return wrapper


def _cloning(patching: Patching, original: Any) -> Any:
    recorder, is_compiling, folder = patching.recorder, patching.is_compiling, patching.places.torch_folder

    @functools.wraps(original)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if is_compiling() or recorder.is_optimizing or not recorder.is_here():
            return original(*args, **kwargs)
        if not (recorder.stand_in or args[0].is_cuda):
            return original(*args, **kwargs)
        caller = caller_outside(folder)
        if caller is None:
            return original(*args, **kwargs)
        size = args[0].numel() * args[0].element_size()
        return patching.timed(("cloning", "clone", size), caller, original, args, kwargs)

    return wrapper
