"""What is patched in torch, once, right after it has been imported; it is never taken back while the program runs.

Each wrapper gives way at once while torch.compile traces it, in other threads, and within another wrapper: a tensor
subclass or a function mode leads a call through the same attribute twice.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
import time
import weakref
from contextlib import suppress
from typing import Any

from .places import Places
from .recorder import MOST_SHAPES, WARM_UP_STEPS, Recorder

SYNCHRONISING = ("item", "tolist", "cpu", "__bool__", "__float__", "__int__", "__index__", "__repr__", "__format__")
GRAPH_STEPS = (WARM_UP_STEPS + 2, 60)
"""Steps in which the operations of the model are counted; they do not count as steps."""

MOST_NODES = 20_000
SMALL_ELEMENTS = 2**18
"""A GPU with 1 TB/s of memory bandwidth reads and writes them in 2 µs; a launch takes 5 to 20 µs."""

LARGE_SIDE = 256
"""Matrices with fewer rows or columns gain little from tensor cores."""


def install(torch: Any, recorder: Recorder) -> None:
    """Patch torch so that `recorder` hears of loaders, copies, synchronisation, clones, passes and steps."""
    # PyTorch that names a CUDA version and was built without CUDA computes on the CPU what it says the GPU does.
    recorder.stand_in = bool(torch.version.cuda) and not torch.backends.cuda.is_built()
    patches = _Patches(torch, recorder)
    patches.loaders()
    patches.tensors()
    patches.passes()
    recorder.facts["torch"] = str(torch.__version__)
    recorder.ask = patches.facts


class _Patches:
    def __init__(self, torch: Any, recorder: Recorder) -> None:
        self.torch, self.recorder = torch, recorder
        self.places = Places(os.path.dirname(torch.__file__))
        compiler = getattr(torch, "compiler", None)
        self.is_compiling = getattr(compiler, "is_compiling", None) or (lambda: False)
        self._made: Any = weakref.WeakKeyDictionary()
        self._pins = False
        self._graphs_at_begin: int | None = None
        self._training: dict[int, dict[str, Any]] = {}

    def loaders(self) -> None:
        """Time what the training thread waits for a DataLoader, and note its settings."""
        from torch.utils.data import DataLoader
        from torch.utils.data.dataloader import _BaseDataLoaderIter

        recorder, made, places = self.recorder, self._made, self.places
        iterate: Any = _BaseDataLoaderIter.__next__
        begin: Any = DataLoader.__iter__
        create: Any = DataLoader.__init__

        @functools.wraps(create)
        def create_noted(self: Any, *args: Any, **kwargs: Any) -> None:
            create(self, *args, **kwargs)
            with suppress(Exception):
                made[self] = places.of(sys._getframe(1))

        @functools.wraps(begin)
        def begin_noted(loader: Any) -> Any:
            begun = time.perf_counter_ns()
            iterator = begin(loader)
            with suppress(Exception):
                self._note_loader(loader)
                if recorder.is_here():
                    recorder.spent("loader", begun)
            return iterator

        @functools.wraps(iterate)
        def timed(iterator: Any) -> Any:
            if recorder.kind != "optimizer" and not recorder.is_inside:
                recorder.step_from("loader", type(iterator).__name__)
            if not recorder.is_here():
                return iterate(iterator)
            recorder.is_inside, recorder.is_optimizing = True, False
            begun = time.perf_counter_ns()
            try:
                return iterate(iterator)
            finally:
                recorder.is_inside = False
                recorder.after_input(recorder.spent("loader", begun))
                recorder.count("batches")
                if recorder.is_sampled:
                    recorder.at("loader", places.of(sys._getframe(1)), 0)

        DataLoader.__init__ = create_noted
        DataLoader.__iter__ = begin_noted
        _BaseDataLoaderIter.__next__ = timed

    def _note_loader(self, loader: Any) -> None:
        self._pins = bool(loader.pin_memory)
        known = self.recorder.facts.get("loader", {})
        self.recorder.facts["loader"] = {
            "workers": loader.num_workers,
            "pin_memory": self._pins,
            "batch_size": loader.batch_size,
            "persistent_workers": bool(getattr(loader, "persistent_workers", False)),
            "prefetch_factor": getattr(loader, "prefetch_factor", None),
            "dataset": type(loader.dataset).__name__,
            "dataset_length": len(loader.dataset) if hasattr(type(loader.dataset), "__len__") else None,
            "made": self._made.get(loader, ("", 0)),
            "epochs": known.get("epochs", 0) + 1,
        }

    def tensors(self) -> None:
        """Time copies to the GPU, what waits for it, and clones."""
        tensor = self.torch.Tensor
        for name in SYNCHRONISING:
            setattr(tensor, name, self._synchronising(getattr(tensor, name), name))
        tensor.clone = self._cloning(tensor.clone)
        tensor.__deepcopy__ = self._cloning(tensor.__deepcopy__)
        tensor.to = self._moving(tensor.to, self._device_of)
        tensor.cuda = self._moving(tensor.cuda, lambda *_: "cuda")
        tensor.copy_ = self._copying(tensor.copy_)
        for name in ("tensor", "as_tensor"):
            setattr(self.torch, name, self._making(getattr(self.torch, name)))
        cuda = self.torch.cuda
        cuda.synchronize = self._synchronising(cuda.synchronize, "torch.cuda.synchronize", always=True)

    def _device_of(self, _tensor: Any, args: Any, kwargs: Any) -> str:
        """Return the kind of device that `Tensor.to` is asked for; "" for none."""
        device = kwargs.get("device", args[0] if args else None)
        if isinstance(device, str):
            return device.partition(":")[0]
        if isinstance(device, self.torch.device):
            kind = str(device.type)  # a stand-in may make torch.device("cuda") that of the CPU
            return "cuda" if kind == "cpu" and self.recorder.stand_in else kind
        if isinstance(device, int) and not isinstance(device, bool):
            return "cuda"
        return str(device.device.type) if isinstance(device, self.torch.Tensor) else ""

    def _synchronising(self, original: Any, name: str, *, always: bool = False) -> Any:
        recorder, is_compiling, folder = self.recorder, self.is_compiling, self.places.torch_folder

        @functools.wraps(original)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            if is_compiling() or not recorder.is_here() or recorder.is_optimizing:
                return original(*args, **kwargs)
            if not (always or recorder.stand_in or args[0].is_cuda):
                return original(*args, **kwargs)
            caller = sys._getframe(1)
            if caller.f_code.co_filename.startswith(folder):  # what torch itself needs, such as GradScaler
                return original(*args, **kwargs)
            return self._timed(("synchronising", name, 0), caller, original, args, kwargs)

        return wrapper

    def _cloning(self, original: Any) -> Any:
        recorder, is_compiling, folder = self.recorder, self.is_compiling, self.places.torch_folder

        @functools.wraps(original)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            if is_compiling() or not recorder.is_here() or recorder.is_optimizing:
                return original(*args, **kwargs)
            caller = sys._getframe(1)
            if not (recorder.stand_in or args[0].is_cuda) or caller.f_code.co_filename.startswith(folder):
                return original(*args, **kwargs)
            size = args[0].numel() * args[0].element_size()
            return self._timed(("cloning", "clone", size), caller, original, args, kwargs)

        return wrapper

    def _timed(self, what: tuple[str, str, int], caller: Any, original: Any, args: Any, kwargs: Any) -> Any:
        part, name, size = what
        recorder = self.recorder
        recorder.is_inside = True
        begun = time.perf_counter_ns()
        try:
            return original(*args, **kwargs)
        finally:
            recorder.is_inside = False
            recorder.spent(part, begun)
            recorder.count(part)
            recorder.count(f"{part}_bytes", size)
            if recorder.is_sampled:
                recorder.at(f"{part} {name}", self.places.of(caller), size)

    def _moving(self, original: Any, device_of: Any) -> Any:
        recorder, is_compiling = self.recorder, self.is_compiling
        back = self._synchronising(original, "to")

        @functools.wraps(original)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            if is_compiling() or recorder.is_inside:
                return original(*args, **kwargs)
            device = device_of(*args[:1], args[1:], kwargs)
            if device == "cpu":
                return back(*args, **kwargs)
            if device != "cuda" or args[0].is_cuda:
                return original(*args, **kwargs)
            return self._to_gpu(args[0], sys._getframe(1), original, args, kwargs)

        return wrapper

    def _copying(self, original: Any) -> Any:
        recorder, is_compiling = self.recorder, self.is_compiling

        @functools.wraps(original)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            if is_compiling() or not recorder.is_here() or recorder.is_optimizing or len(args) < 2:
                return original(*args, **kwargs)
            if not args[0].is_cuda or getattr(args[1], "is_cuda", True):
                return original(*args, **kwargs)
            return self._to_gpu(args[1], sys._getframe(1), original, args, kwargs)

        return wrapper

    def _making(self, original: Any) -> Any:
        recorder, is_compiling = self.recorder, self.is_compiling

        @functools.wraps(original)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            if is_compiling() or "device" not in kwargs or recorder.is_inside:
                return original(*args, **kwargs)
            if str(kwargs["device"]).partition(":")[0] != "cuda" or getattr(args[0], "is_cuda", False):
                return original(*args, **kwargs)
            return self._to_gpu(None, sys._getframe(1), original, args, kwargs)

        return wrapper

    def _to_gpu(self, source: Any, caller: Any, original: Any, args: Any, kwargs: Any) -> Any:
        """Return what `original` returns: it sends a tensor, None for what is no tensor yet, to the GPU."""
        recorder = self.recorder
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
                self._note_copy(made if source is None else source, source is None, caller)
                recorder.after_input(now)
            return made
        finally:
            recorder.is_inside = False

    def _note_copy(self, source: Any, is_new: bool, caller: Any) -> None:
        recorder = self.recorder
        size = source.numel() * source.element_size()
        pinned = not is_new and (self._pins if recorder.stand_in else source.is_pinned())
        recorder.count("copies")
        recorder.count("copy_bytes", size)
        recorder.count("pageable_bytes", 0 if pinned else size)
        if recorder.is_sampled:
            recorder.at("copies", self.places.of(caller), size)
            whole = 0 if is_new else source.untyped_storage().nbytes()
            if whole > size:  # a slice of a data set that is in memory
                recorder.facts["source_bytes"] = max(whole, recorder.facts.get("source_bytes", 0))
        if len(recorder.shapes) < MOST_SHAPES:
            recorder.shapes.add(tuple(source.shape))

    def passes(self) -> None:
        """Time the backward pass and the optimizer, whose end is the end of a step; note the precision."""
        from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

        recorder, torch, is_compiling = self.recorder, self.torch, self.is_compiling
        backward: Any = torch.autograd.backward

        @functools.wraps(backward)
        def timed(*args: Any, **kwargs: Any) -> Any:
            if is_compiling() or not recorder.is_here():
                return backward(*args, **kwargs)
            begun = time.perf_counter_ns()
            recorder.before_backward(begun)
            if recorder.steps in GRAPH_STEPS:
                self._count_graph(args[0] if args else None)
                begun = time.perf_counter_ns()
            recorder.is_inside = True
            try:
                return backward(*args, **kwargs)
            finally:
                recorder.is_inside = recorder.is_optimizing = False
                recorder.spent("backward", begun)

        torch.autograd.backward = timed
        autocast = torch.amp.autocast_mode.autocast
        enter: Any = autocast.__enter__

        @functools.wraps(enter)
        def entered(context: Any) -> Any:
            if not is_compiling() and recorder.is_here() and getattr(context, "_enabled", False):
                recorder.count("autocasts")
                recorder.facts["autocast"] = str(context.fast_dtype).rpartition(".")[2]
            return enter(context)

        autocast.__enter__ = entered
        begun = [0]

        def before(_optimizer: Any, *_: Any) -> None:
            if recorder.is_here():
                recorder.is_optimizing, begun[0] = True, time.perf_counter_ns()

        def after(optimizer: Any, *_: Any) -> None:
            if recorder.is_here() and recorder.is_optimizing:
                recorder.spent("optimizer", begun[0])
            recorder.is_optimizing = False
            recorder.step_from("optimizer", id(optimizer))
            if recorder.steps == 1:
                self._note_parameters(optimizer)
                self._graphs_at_begin = self._compiled().get("graphs")

        register_optimizer_step_pre_hook(before)
        register_optimizer_step_post_hook(after)

    def _count_graph(self, tensors: Any) -> None:
        """Count the operations between the parameters and the loss."""
        recorder = self.recorder
        recorder.spoil_step()
        with suppress(Exception):
            roots = tensors if isinstance(tensors, (tuple, list)) else (tensors,)
            todo = [root.grad_fn for root in roots if root.grad_fn is not None]
            seen = set(todo)
            while todo and len(seen) < MOST_NODES:
                for node, _ in todo.pop().next_functions:
                    if node is not None and node not in seen:
                        seen.add(node)
                        todo.append(node)
            operations = [node for node in seen if type(node).__name__ != "AccumulateGrad"]
            recorder.facts["operations"] = len(operations)
            recorder.facts["small_operations"] = sum(_is_small(node) for node in operations)

    def _note_parameters(self, optimizer: Any) -> None:
        recorder = self.recorder
        recorder.is_inside = True
        with suppress(Exception):
            parameters = [item for group in optimizer.param_groups for item in group["params"]]
            large = [item for item in parameters if item.dim() >= 2 and _is_large(item.shape)]
            recorder.facts["parameters"] = {
                "bytes": sum(item.numel() * item.element_size() for item in parameters),
                "large_elements": sum(item.numel() for item in large),
                "precisions": sorted({str(item.dtype).rpartition(".")[2] for item in large or parameters}),
                "devices": sorted({item.device.type for item in parameters}),
            }
        recorder.is_inside = False

    def facts(self, *, in_step: bool) -> dict[str, Any]:
        """Return what torch itself counts: compilations, memory, switches."""
        found: dict[str, Any] = {"compiled": {**self._compiled(), "graphs_at_begin": self._graphs_at_begin}}
        with suppress(Exception):
            found["tf32"] = bool(self.torch.backends.cuda.matmul.allow_tf32)
        cuda = self.torch.cuda
        with suppress(Exception):
            if cuda.is_initialized():
                found["gpus"] = [self._gpu(index, in_step) for index in range(cuda.device_count())]
        return found

    def _gpu(self, index: int, in_step: bool) -> dict[str, Any]:
        cuda = self.torch.cuda
        statistics, properties = cuda.memory_stats(index), cuda.get_device_properties(index)
        names = {
            "allocated_peak": "allocated_bytes.all.peak",
            "reserved": "reserved_bytes.all.current",
            "split": "inactive_split_bytes.all.current",
            "retries": "num_alloc_retries",
            "out_of_memory": "num_ooms",
        }
        numbers = {name: statistics.get(key) for name, key in names.items()}
        if in_step or index not in self._training:
            self._training[index] = {name: numbers[name] for name in ("reserved", "split")}
        return {
            "index": index,
            "total": properties.total_memory,
            "capability": [properties.major, properties.minor],
            **numbers,
            **self._training[index],  # at the end, the tensors are gone
        }

    @staticmethod
    def _compiled() -> dict[str, Any]:
        dynamo: Any = sys.modules.get("torch._dynamo.utils")
        if dynamo is None:
            return {}
        times = getattr(dynamo, "compilation_time_metrics", {})
        inner = next((times[name] for name in ("_compile.compile_inner", "_compile") if name in times), ())
        return {"graphs": dynamo.counters["stats"].get("unique_graphs", 0), "seconds": sum(inner), "times": len(inner)}


def _is_large(shape: Any) -> bool:
    columns = 1
    for side in shape[1:]:
        columns *= side
    return shape[0] >= LARGE_SIDE and columns >= LARGE_SIDE


def _is_small(node: Any) -> bool:
    """Return whether the result of an operation is so small that a GPU needs less time than its launch."""
    elements = 0
    for result in node._input_metadata:
        count = 1
        for side in result.shape:
            count *= side
        elements += count
    return elements < SMALL_ELEMENTS
