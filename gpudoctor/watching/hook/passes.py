"""Passes: the backward pass, the optimizer, whose end is the end of a step, and the precision."""

from __future__ import annotations

import functools
import time
from typing import Any

from .graph import GRAPH_STEPS, operations_of, parameters_of
from .patching import Patching
from .recorder import WARM_UP_STEPS
from .torch_facts import TorchFacts, compiled


def patch_passes(patching: Patching, facts: TorchFacts) -> None:
    """Time the backward pass and the optimizer; note the precision."""
    _patch_backward(patching)
    _patch_autocast(patching)
    _watch_optimizers(patching, facts)


def _patch_backward(patching: Patching) -> None:
    recorder, is_compiling = patching.recorder, patching.is_compiling
    original: Any = patching.torch.autograd.backward

    @functools.wraps(original)
    def backward(*args: Any, **kwargs: Any) -> Any:
        if is_compiling() or not recorder.is_here():
            return original(*args, **kwargs)
        begun = time.perf_counter_ns()
        recorder.before_backward(begun)
        if recorder.steps in GRAPH_STEPS:
            recorder.spoil_step()
            recorder.facts.update(operations_of(args[0] if args else None))
            begun = time.perf_counter_ns()
        recorder.is_inside = True
        try:
            return original(*args, **kwargs)
        finally:
            recorder.is_inside = recorder.is_optimizing = False
            now = recorder.spent("backward", begun)
            if recorder.in_closure:  # what the optimizer itself does begins now
                recorder.is_optimizing, recorder.optimizing_since = True, now

    patching.replace_function(patching.torch.autograd, "backward", backward)


def _patch_autocast(patching: Patching) -> None:
    recorder, is_compiling = patching.recorder, patching.is_compiling
    autocast = patching.torch.amp.autocast_mode.autocast
    original: Any = autocast.__enter__

    @functools.wraps(original)
    def enter(context: Any) -> Any:
        if not is_compiling() and recorder.is_here() and getattr(context, "_enabled", False):
            recorder.count("autocasts")
            recorder.facts["autocast"] = str(context.fast_dtype).rpartition(".")[2]
        return original(context)

    patching.replace(autocast, "__enter__", enter)


def _watch_optimizers(patching: Patching, facts: TorchFacts) -> None:
    from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

    recorder = patching.recorder

    def before(_optimizer: Any, args: Any = (), kwargs: Any = None) -> None:
        if recorder.is_here():
            recorder.in_closure = (kwargs or {}).get("closure", args[1] if len(args) > 1 else None) is not None
            recorder.is_optimizing, recorder.optimizing_since = not recorder.in_closure, time.perf_counter_ns()

    def after(optimizer: Any, *_: Any) -> None:
        if recorder.is_here() and recorder.is_optimizing:
            recorder.spent("optimizer", recorder.optimizing_since)
        recorder.is_optimizing = recorder.in_closure = False
        recorder.step_from("optimizer", id(optimizer))
        if recorder.steps == 1:
            recorder.is_inside = True
            recorder.facts["parameters"] = parameters_of(optimizer)
            recorder.is_inside = False
            facts.graphs_at_begin = compiled().get("graphs")
        elif recorder.steps == WARM_UP_STEPS:
            facts.seconds_at_begin = compiled().get("seconds", 0.0)

    patching.register(register_optimizer_step_pre_hook, before)
    patching.register(register_optimizer_step_post_hook, after)
