"""Copies to the GPU: their bytes, from which memory, and from which line."""

from __future__ import annotations

import functools
import sys
import threading
import time
from typing import Any

from .patching import Patching
from .recorder import MOST_SHAPES


def patch_copies(patching: Patching, back: Any) -> None:
    """Time copies to the GPU. back: what `Tensor.to` is instead if it brings a tensor to the CPU."""
    torch, tensor = patching.torch, patching.torch.Tensor
    patching.replace(
        tensor, "to", _moving(patching, tensor.to, lambda args, kwargs: _device(patching, args, kwargs), back)
    )
    patching.replace(tensor, "cuda", _moving(patching, tensor.cuda, lambda *_: "cuda", None))
    patching.replace(tensor, "copy_", _copying(patching, tensor.copy_))
    for name in ("tensor", "as_tensor"):
        patching.replace_function(torch, name, _making(patching, getattr(torch, name)))


def _device(patching: Patching, args: Any, kwargs: Any) -> str:
    """Return the kind of device that `Tensor.to` is asked for; "" for none."""
    device = kwargs.get("device", args[1] if len(args) > 1 else None)
    if isinstance(device, str):
        return device.partition(":")[0]
    if isinstance(device, patching.torch.device):
        kind = str(device.type)  # a stand-in may make torch.device("cuda") that of the CPU
        return "cuda" if kind == "cpu" and patching.recorder.stand_in else kind
    if isinstance(device, int) and not isinstance(device, bool):
        return "cuda"
    return str(device.device.type) if isinstance(device, patching.torch.Tensor) else ""


def _moving(patching: Patching, original: Any, device_of: Any, back: Any) -> Any:
    recorder, is_compiling = patching.recorder, patching.is_compiling

    @functools.wraps(original)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if is_compiling() or recorder.is_inside:
            return original(*args, **kwargs)
        device = device_of(args, kwargs)
        if device == "cpu":
            return back(*args, **kwargs)
        if device != "cuda" or args[0].is_cuda:
            return original(*args, **kwargs)
        return _to_gpu(patching, args[0], original, args, kwargs)

    return wrapper


def _copying(patching: Patching, original: Any) -> Any:
    recorder, is_compiling = patching.recorder, patching.is_compiling

    @functools.wraps(original)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if is_compiling() or recorder.is_optimizing or not recorder.is_here() or len(args) < 2:
            return original(*args, **kwargs)
        if not args[0].is_cuda or getattr(args[1], "is_cuda", True):
            return original(*args, **kwargs)
        return _to_gpu(patching, args[1], original, args, kwargs)

    return wrapper


def _making(patching: Patching, original: Any) -> Any:
    recorder, is_compiling = patching.recorder, patching.is_compiling

    @functools.wraps(original)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if is_compiling() or "device" not in kwargs or recorder.is_inside:
            return original(*args, **kwargs)
        if str(kwargs["device"]).partition(":")[0] != "cuda" or getattr(args[0], "is_cuda", False):
            return original(*args, **kwargs)
        return _to_gpu(patching, None, original, args, kwargs)

    return wrapper


def _to_gpu(patching: Patching, source: Any, original: Any, args: Any, kwargs: Any) -> Any:
    """Return what `original` returns: it sends a tensor, None for what is no tensor yet, to the GPU."""
    recorder, caller = patching.recorder, sys._getframe(2)
    recorder.facts["sent_to_gpu"] = True
    if recorder.thread not in (0, threading.get_ident()):
        return original(*args, **kwargs)
    is_in_step = recorder.is_here() and not recorder.is_optimizing
    recorder.is_inside = True
    begun = time.perf_counter_ns()
    if is_in_step:
        recorder.before_input(begun)
    try:
        made = original(*args, **kwargs)
        recorder.stand_in = recorder.stand_in or not made.is_cuda
        if is_in_step:
            now = recorder.spent("copies", begun)
            waits = not (kwargs.get("non_blocking") or any(argument is True for argument in args[1:]))
            _note(patching, source, made, caller, waits=waits)
            recorder.after_input(now)
        return made
    finally:
        recorder.is_inside = False


def _note(patching: Patching, source: Any, made: Any, caller: Any, *, waits: bool) -> None:
    """Count a copy. source: None for what was no tensor. waits: the program waits for the copy."""
    recorder, is_new = patching.recorder, source is None
    source = made if is_new else source
    size = source.numel() * source.element_size()
    pinned = not is_new and (patching.pins if recorder.stand_in else source.is_pinned())
    recorder.count("copies")
    recorder.count("copy_bytes", size)
    recorder.count("pageable_bytes", 0 if pinned else size)
    recorder.count("background_bytes", size if pinned and not waits else 0)
    if recorder.is_sampled:
        recorder.at("copies", patching.places.of(caller), size)
        whole = 0 if is_new else source.untyped_storage().nbytes()
        if whole > size:  # a slice of a data set that is in memory
            recorder.facts["source_bytes"] = max(whole, recorder.facts.get("source_bytes", 0))
    if len(recorder.shapes) < MOST_SHAPES:
        recorder.shapes.add(tuple(source.shape))
