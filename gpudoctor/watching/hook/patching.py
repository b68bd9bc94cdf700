"""What the patches of torch have in common: what they replace, and when they give way.

Each wrapper gives way at once while torch.compile traces it, in other threads, and within another wrapper: a tensor
subclass or a function mode leads a call through the same attribute twice.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from typing import Any

from .places import Places
from .recorder import Recorder

_INHERITED = object()
DECISIONS = frozenset(("__bool__", "__contains__", "__getitem__", "__setitem__", "__index__", "equal", "torch.equal"))
"""What an installed package decides itself by a tensor, the user cannot change: its time counts, it itself does not."""


class Patching:
    """torch, the recorder of this process, and the list of what was replaced."""

    def __init__(self, torch: Any, recorder: Recorder) -> None:
        self.torch, self.recorder = torch, recorder
        self.places = Places(os.path.dirname(torch.__file__))
        compiler = getattr(torch, "compiler", None)
        self.is_compiling = getattr(compiler, "is_compiling", None) or (lambda: False)
        self._plain = (torch.Tensor, torch.nn.Parameter)
        self._unheard = getattr(torch._C, "DisableTorchFunctionSubclass", None) or torch._C.DisableTorchFunction
        self.pins = False
        """Whether the loader that was iterated last pins its batches."""
        self._is_on = True
        self._replaced: list[tuple[Any, str, Any, Any]] = []
        self._registered: list[tuple[Any, Any]] = []
        self._handles: list[Any] = []

    def is_cuda(self, tensor: Any) -> bool:
        """Return whether a tensor is on a GPU, and let no subclass hear of the question."""
        if type(tensor) in self._plain:
            return bool(tensor.is_cuda)
        with self._unheard():
            return bool(tensor.is_cuda)

    def replace(self, owner: Any, name: str, wrapper: Any) -> None:
        """Replace an attribute of a class or module. It stays so: a library may keep the wrapper as a key."""
        self._replaced.append((owner, name, vars(owner).get(name, _INHERITED), wrapper))
        setattr(owner, name, wrapper)

    def replace_function(self, owner: Any, name: str, wrapper: Any) -> None:
        """Replace a function of a module, also for TorchScript, which knows functions by their identity."""
        original = getattr(owner, name)
        self.replace(owner, name, wrapper)
        with suppress(Exception):
            from torch._jit_internal import boolean_dispatched
            from torch.jit import _builtins

            operator = _builtins._find_builtin(original)
            if operator is not None:
                _builtins._register_builtin(wrapper, operator)
            if original in boolean_dispatched:
                boolean_dispatched[wrapper] = boolean_dispatched[original]

    def register(self, register: Any, function: Any) -> None:
        """Register a function with a part of torch that calls it by itself."""
        self._registered.append((register, function))
        self._handles.append(register(function))

    def switch(self, *, on: bool) -> None:
        """Remove all patches, or apply them again: for the benchmark, which compares the two."""
        if on == self._is_on:
            return
        self._is_on = on
        for owner, name, original, wrapper in self._replaced:
            if on or original is not _INHERITED:
                setattr(owner, name, wrapper if on else original)
            else:
                delattr(owner, name)
        for handle in self._handles:
            handle.remove()
        self._handles = [register(function) for register, function in self._registered] if on else []

    def timed(self, what: tuple[str, str, int], caller: Any, original: Any, args: Any, kwargs: Any) -> Any:
        """Return what `original` returns, and record it. what: part of the step, name of the call, bytes."""
        part, name, size = what
        recorder = self.recorder
        recorder.is_inside = True
        begun = time.perf_counter_ns()
        try:
            return original(*args, **kwargs)
        finally:
            recorder.is_inside = False
            recorder.spent(part, begun)
            package = self.places.package_of(caller)
            if not package or name not in DECISIONS:
                recorder.count(part)
                recorder.count(f"{part}_bytes", size)
                if recorder.is_sampled:
                    recorder.at(f"{part} {name} {package}", self.places.of(caller), size)


def caller_outside(folder: str, wrappers: int) -> Any:
    """Return the frame that called the outer of so many wrappers; None if it is a file of `folder`, torch's own."""
    caller = sys._getframe(1 + wrappers)
    return None if caller.f_code.co_filename.startswith(folder) else caller
