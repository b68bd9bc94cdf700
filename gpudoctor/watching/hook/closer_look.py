"""A closer look at two steps: how many operators one of them dispatches, and how many kernels another one runs.

Both are counted by PyTorch's own profilers, and neither step counts for the times. Operators are counted once the
program has trained for some seconds, without CUPTI. Kernels need CUPTI, whose start takes long, so they are counted
after a minute: on a GPU, and only if nothing else uses CUPTI or CUDA graphs, with which it may crash. The program waits
for the GPU twice then.
"""

from __future__ import annotations

import functools
import math
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from .patching import Patching
from .torch_facts import compiled

OPERATORS_AFTER_NS = 2_000_000_000
KERNELS_AFTER_NS = 60_000_000_000
"""Of training, so that a look takes little of it."""

NEVER = sys.maxsize
LONGEST, LONGER_NS = 5, 50_000_000
"""Times the usual step, and what looking may add. What takes longer has an evaluation in it: another step is tried."""

MOST_TRIES = 3
OTHER_PROFILERS = ("CUDA_INJECTION64_PATH", "NSYS_PROFILING_SESSION_ID", "KINETO_USE_DAEMON")
LOG_LEVEL, SILENT = "KINETO_LOG_LEVEL", "99"
COPIES = ("Memcpy", "Memset")
NO_LIBRARIES = ("autograd", "torch", "profiler")
VIEWS = (
    *("alias", "as_strided", "detach", "diagonal", "expand", "expand_as", "flatten", "movedim", "narrow", "numpy_T"),
    *("permute", "reshape", "_reshape_alias", "select", "slice", "split", "squeeze", "t", "transpose", "unbind"),
    *("unflatten", "unfold", "unsqueeze", "_unsafe_view", "view", "view_as", "resolve_conj", "resolve_neg"),
)
WITHOUT_KERNEL = frozenset(
    (
        *VIEWS,
        *("empty", "empty_like", "empty_strided", "is_pinned", "item", "lift_fresh", "_local_scalar_dense"),
        *("record_stream", "resize_", "result_type", "set_", "to"),
    )
)
"""Operators that only give another view of a tensor, allocate memory, or bring a value to the program."""

PRODUCTS = frozenset(
    (
        "addmm",
        "baddbmm",
        "bmm",
        "convolution_overrideable",
        "cudnn_convolution",
        "mkldnn_convolution",
        "mm",
        "_addmm_activation",
    )
)
"""The innermost operators for products, so that none counts twice."""


class CloserLook:
    """What the recorder calls between two steps, and in one that takes too long, once `look_at_ns` has passed."""

    def __init__(self, patching: Patching) -> None:
        self._patching, self._torch, self._recorder = patching, patching.torch, patching.recorder
        self._looks: list[tuple[int, Any]] = [(OPERATORS_AFTER_NS, Operators), (KERNELS_AFTER_NS, Kernels)]
        self._tries = self._first_ns = self._until_ns = self._thread = 0
        self._running: Any = None
        self._plan()
        with suppress(Exception):
            self._give_way(patching)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(before=self.give_up)  # a worker would inherit the profiler

    def between_steps(self, now: int) -> None:
        """Start or end a closer look."""
        self._guarded(self._begin if self._running is None else self._end, now)

    def in_step(self, now: int) -> None:
        """End a look if its step takes too long."""
        if self._running is not None and now > self._until_ns:
            self._guarded(self._end, now)

    def give_up(self) -> None:
        """End a look without a result, and perhaps try again later."""
        if self._running is not None:
            self._guarded(self._end, NEVER)

    def _guarded(self, action: Any, now: int) -> None:
        """Do it, unless a look runs in another thread. Whatever fails ends all looks."""
        recorder = self._recorder
        if self._running is not None and self._thread != threading.get_ident():
            return
        was_inside, recorder.is_inside = recorder.is_inside, True
        try:
            action(now)
        except Exception as error:
            recorder.facts["look_problem"] = f"{type(error).__name__}: {error}"
            self._running, self._looks = None, []
        finally:
            self._plan()
            recorder.is_inside = was_inside

    def _begin(self, now: int) -> None:
        self._first_ns = self._first_ns or now
        while self._looks and now >= self._first_ns + self._looks[0][0]:
            look = self._looks[0][1]
            if look.is_possible(self._torch, self._recorder):
                self._recorder.spoil_step()
                self._thread, self._running = threading.get_ident(), look(self._patching)
                self._until_ns = time.perf_counter_ns() + LONGEST * self._recorder.usual_step_ns() + LONGER_NS
                return
            self._looks.pop(0)

    def _end(self, now: int) -> None:
        running, self._running = self._running, None
        found, is_usual = running.end(), now <= self._until_ns
        self._tries += 1
        if is_usual:
            self._recorder.facts.update(found)
        if is_usual or self._tries >= MOST_TRIES:
            self._looks.pop(0)
            self._tries = 0

    def _plan(self) -> None:
        """Let the recorder call when there is something to do."""
        at = self._first_ns + self._looks[0][0] if self._looks else NEVER
        self._recorder.look_at_ns = at if self._first_ns and self._running is None else 0

    def _give_way(self, patching: Patching) -> None:
        """Stop once the program profiles itself: two profilers at a time are an error. Note its CUDA graphs."""
        from torch.autograd import profiler

        def first(action: Any, original: Any) -> Any:
            @functools.wraps(original)
            def wrapper(*args: Any, **kwargs: Any) -> Any:
                action()
                return original(*args, **kwargs)

            return wrapper

        def stop() -> None:
            if not self._recorder.is_inside:
                self.give_up()
                self._looks = []

        for name in ("_prepare_profiler", "_enable_profiler"):
            patching.replace(profiler, name, first(stop, getattr(profiler, name)))
        facts, graph = self._recorder.facts, patching.torch.cuda.CUDAGraph
        patching.replace(graph, "replay", first(lambda: facts.update(cuda_graphs=True), graph.replay))


class Operators:
    """Counts the operators of a step, also those of its backward pass, from now on, and finds their lines."""

    def __init__(self, patching: Patching) -> None:
        from torch._C._profiler import _ExperimentalConfig
        from torch.autograd import ProfilerConfig, ProfilerState, _disable_profiler_legacy, _enable_profiler_legacy

        self._disable = _disable_profiler_legacy
        self._places = patching.places
        switches = (True, False, True, False, False)  # with shapes and stacks
        _enable_profiler_legacy(ProfilerConfig(ProfilerState.CPU, *switches, _ExperimentalConfig()))

    @staticmethod
    def is_possible(torch: Any, _recorder: Any) -> bool:
        """Return whether the program does not profile itself."""
        return not torch.autograd._profiler_enabled()

    def end(self) -> dict[str, Any]:
        """Return the number of operators, the line with most of them, and the line with the largest matrix products."""
        threads = self._disable()
        operators = [event for events in threads for event in operators_in(events)]
        each: dict[tuple[str, int], int] = {}
        for event in operators:
            place = self._places.of_stack(event.stack())
            each[place] = each.get(place, 0) + 1
        products: dict[tuple[str, int], int] = {}
        for event in (event for events in threads for event in events if event.kind() == "push" and is_product(event)):
            place = self._places.of_stack(event.stack())
            products[place] = products.get(place, 0) + product_size(event)
        found: dict[str, Any] = {"operators": len(operators)}
        for name, lines in (("operators_at", each), ("products_at", products)):
            lines.pop(("", 0), None)
            best = max(lines, key=lambda place: lines[place], default=("", 0))
            if lines.get(best):
                found[name] = best
        return found


def is_product(event: Any) -> bool:
    """Return whether an operator is a matrix product or a convolution."""
    return event.name().partition("::")[2] in PRODUCTS


def product_size(event: Any) -> int:
    """Return a measure of the work in a product: the elements of both factors, multiplied."""
    return math.prod(sorted(math.prod(shape) for shape in event.shapes() if shape)[-2:])


def operators_in(events: Any) -> list[Any]:
    """Return the begin events of the operators of a thread that launch work. They contain no other such operator."""
    found: list[Any] = []
    outer: list[tuple[Any, int]] = []  # its beginning, and how many were found before
    for event in events:
        kind = event.kind()
        if kind == "push":
            outer.append((event, len(found)))
        elif kind == "pop" and outer:
            begun, before = outer.pop()
            library, _, operator = begun.name().partition("::")
            launches = operator and library not in NO_LIBRARIES and operator not in WITHOUT_KERNEL
            if launches and len(found) == before:
                found.append(begun)
    return found


class Kernels:
    """Counts the kernels of a step, and the time in which at least one runs, from now on."""

    def __init__(self, patching: Patching) -> None:
        torch = patching.torch
        from torch.autograd import DeviceType
        from torch.autograd.profiler import profile

        self._gpu = DeviceType.CUDA
        torch.cuda.synchronize()
        with silence():
            self._profile = profile(use_device="cuda", use_cpu=False, use_kineto=True)
            self._profile.__enter__()

    @staticmethod
    def is_possible(torch: Any, recorder: Any) -> bool:
        """Return whether the program uses a GPU, and nothing that CUPTI may harm."""
        from torch.autograd import ProfilerActivity, profiler

        if torch.autograd._profiler_enabled() or any(os.environ.get(name) for name in OTHER_PROFILERS):
            return False
        if ProfilerActivity.CUDA not in profiler._supported_activities() or not torch.cuda.is_initialized():
            return False
        return not compiled().get("graphs") and "cuda_graphs" not in recorder.facts

    def end(self) -> dict[str, Any]:
        """Return the number of kernels, and how many milliseconds they kept the GPU busy; nothing without kernels."""
        with silence():
            self._profile.__exit__(None, None, None)  # waits for the GPU
        return kernels_in(self._profile.kineto_results.events(), self._gpu)


def kernels_in(events: Any, gpu: Any) -> dict[str, Any]:
    """Return the number of kernels, and the milliseconds in which at least one ran; nothing without kernels."""
    found = [
        (event.start_ns(), event.start_ns() + event.duration_ns())
        for event in events
        if event.device_type() == gpu and not event.name().startswith(COPIES) and not event.is_user_annotation()
    ]
    busy, until = 0, 0
    for begin, end in sorted(found):
        busy += max(end - max(begin, until), 0)
        until = max(until, end)
    return {"kernels": len(found), "gpu_busy_ms": busy / 1e6} if found else {}


@contextmanager
def silence() -> Iterator[None]:
    """Keep Kineto from writing to the program's standard error, unless the user has chosen its level."""
    chosen = os.environ.get(LOG_LEVEL)
    if chosen is None:
        os.environ[LOG_LEVEL] = SILENT
    try:
        yield
    finally:
        if chosen is None:
            os.environ.pop(LOG_LEVEL, None)
