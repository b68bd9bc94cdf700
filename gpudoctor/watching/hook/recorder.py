"""What is counted and timed in one process, and the file that it is written to."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from contextlib import suppress
from typing import Any

from .places import cells_of

WARM_UP_STEPS = 5
"""Left out: they find algorithms, compile, and start workers."""

SAMPLED_FIRST, SAMPLED_EVERY = 40, 16
"""Lines are looked for in the first steps, and in one of so many later ones. A search takes 0.4 to 4 µs."""

WRITE_EVERY_NS = 2_000_000_000
EARLY_WRITES = (WARM_UP_STEPS + 20, 100)
OTHERS_TAKE_OVER = 10
"""Steps of other optimizers in a row, more than those of a critic between two of the generator."""

MOST_SERIES = 256
MOST_PLACES = 200
MOST_SHAPES = 64
SINGLE_LINES = ("operators_at", "products_at", "compiling_at")
PARTS = ("loader", "prepare", "copies", "synchronising", "cloning", "forward", "backward", "optimizer")


class Recorder:
    """Times of steps and their parts, which never overlap.

    is_inside: whether a patched function is running: what it calls itself is part of it.
    in_closure: whether an optimizer calls the program's passes, as that of Lightning does.
    stand_in: whether tensors that were sent to the GPU say that they are elsewhere, as under a stand-in for a GPU.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._series_stride = 1
        self.problem = ""
        self.facts: dict[str, Any] = {}
        self.ask: Any = lambda **_: {}
        """What gives more facts on torch when the file is written."""
        self.look: Any = None
        """What looks closer at single steps, from `look_at_ns` on."""
        self.look_at_ns = 0
        self.is_sampled = True
        self.stand_in = self._was_forked = False
        self._reset()

    def _reset(self) -> None:
        self.pid = os.getpid()
        self.is_inside = self.is_optimizing = self.in_closure = False
        self.optimizing_since = 0
        self.thread = 0
        self.boundary: object = None
        self.kind = ""
        self.steps = self.counted = self._others = 0
        self._begun = self._written = 0
        self.step_ns = 0
        self.parts = dict.fromkeys(PARTS, 0)
        self._now = dict.fromkeys(PARTS, 0)
        self.counts: dict[str, int] = {}
        self._counts_now: dict[str, int] = {}
        self.places: dict[tuple[str, str, int], list[int]] = {}
        self.shapes: set[Any] = set()
        self.series: list[tuple[float, ...]] = []
        self._has_input, self._input_at, self._known_at_input = False, 0, 0
        self._is_spoilt = False

    def begin_in_child(self) -> None:
        """Begin again in a process that was forked; it writes no file unless it trains itself."""
        self._was_forked = True
        self._reset()

    def is_here(self) -> bool:
        """Return whether the thread that trains calls, and not from within something that is timed already."""
        return not self.is_inside and self.thread == threading.get_ident()

    def step_from(self, kind: str, source: object) -> None:
        """Count a step if `source` (an optimizer, a loader) is what marks them: an optimizer if there is one."""
        if self.kind != kind and (not self.kind or kind == "optimizer"):
            self._reset()
            self.kind, self.boundary, self.thread = kind, source, threading.get_ident()
            self._write_at_end()
        if self.kind != kind:
            return
        if self.boundary == source:
            self._others = 0
            self._end_step(time.perf_counter_ns())
            return
        self._others += 1
        if self._others >= OTHERS_TAKE_OVER:  # the next of several trainings in one process
            self.boundary, self._begun, self._others = source, 0, 0

    def _write_at_end(self) -> None:
        """Write the file when a process of multiprocessing ends, which runs no other functions of the end."""
        util: Any = sys.modules.get("multiprocessing.util")
        if self._was_forked and util is not None:
            self._was_forked = False
            util.Finalize(None, self.write, exitpriority=0)

    def _end_step(self, now: int) -> None:
        if self._begun:
            self.steps += 1
            if self.steps > WARM_UP_STEPS and not self._is_spoilt:
                self._count(now)
            if self.steps in EARLY_WRITES or now - self._written > WRITE_EVERY_NS:
                self.write(in_step=True)
                now = time.perf_counter_ns()
        else:
            self._written = now
        self._now = dict.fromkeys(PARTS, 0)
        self._counts_now = {}
        self._has_input, self._input_at, self._known_at_input = False, now, 0
        self._is_spoilt = False
        self.is_sampled = self.steps < SAMPLED_FIRST or self.steps % SAMPLED_EVERY == 0
        if now >= self.look_at_ns and self.look is not None and self.counted:
            self.look.between_steps(now)
            now = self._input_at = time.perf_counter_ns()
        self._begun = now

    def _count(self, now: int) -> None:
        self.counted += 1
        self.step_ns += now - self._begun
        for part, spent in self._now.items():
            self.parts[part] += spent
        for name, number in self._counts_now.items():
            self.counts[name] = self.counts.get(name, 0) + number
        if self.counted % self._series_stride == 0:
            entry = [now / 1e9, (now - self._begun) / 1e6]
            entry += [self._now[part] / 1e6 for part in ("loader", "copies", "synchronising")]
            self.series.append(tuple(round(number, 3) for number in entry))
            if len(self.series) >= MOST_SERIES:
                del self.series[::2]
                self._series_stride *= 2

    def usual_step_ns(self) -> int:
        """Return the mean duration of a step, of those that count."""
        return self.step_ns // self.counted

    def spoil_step(self) -> None:
        """Leave the step that is running out: the hook itself looked at something in it."""
        self._is_spoilt = True

    def spent(self, part: str, begun: int) -> int:
        """Add the time since `begun` to a part of the step; return now."""
        now = time.perf_counter_ns()
        self._now[part] += now - begun
        if now >= self.look_at_ns and self.look is not None:
            self.look.in_step(now)
        return now

    def may_use_gpu(self) -> bool:
        """Return whether this step has sent data to the GPU, or none does."""
        return self._has_input or not self.counts.get("copies")

    def before_input(self, now: int) -> None:
        """Call it before data goes to the GPU: the first time in a step, what came before was preparing it."""
        if not self._has_input:
            self._has_input = True
            self._now["prepare"] += max(now - self._begun - sum(self._now.values()), 0) if self._begun else 0

    def after_input(self, now: int) -> None:
        """Call it when data has come from the loader or has been sent to the GPU: the model may begin."""
        self._input_at, self._known_at_input = now, sum(self._now.values())

    def before_backward(self, now: int) -> None:
        """Call it when the backward pass begins: the forward pass has ended."""
        if self._input_at:
            known = sum(self._now.values()) - self._known_at_input
            self._now["forward"] += max(now - self._input_at - known, 0)

    def count(self, name: str, number: int = 1) -> None:
        """Count something that happens in this step."""
        self._counts_now[name] = self._counts_now.get(name, 0) + number

    def at(self, kind: str, place: tuple[str, int], size: int) -> None:
        """Count that `place` did something in a sampled step."""
        key = (kind, *place)
        if key in self.places:
            self.places[key][0] += 1
            self.places[key][1] += size
        elif len(self.places) < MOST_PLACES and self.steps > 0:
            self.places[key] = [1, size]

    def write(self, *, in_step: bool = False) -> None:
        """Write the file of this process, whole or not at all. in_step: the program trains, and has not ended."""
        self._written = time.perf_counter_ns()
        if os.getpid() != self.pid:
            return
        with suppress(Exception):
            more = self.ask(in_step=in_step)
            path = os.path.join(self._folder, f"{self.pid}.json")
            with open(f"{path}.new", "w", encoding="utf-8") as file:
                json.dump(_with_cells({**self._state(), **more}), file)
            os.replace(f"{path}.new", path)

    def _state(self) -> dict[str, Any]:
        names = ("RANK", "LOCAL_RANK", "WORLD_SIZE")
        return {
            "pid": self.pid,
            "parent": os.getppid(),
            "program": sys.argv[0] if getattr(sys, "argv", None) else "",
            "folder": os.getcwd(),
            "problem": self.problem,
            "ranks": {name: int(os.environ[name]) for name in names if os.environ.get(name, "").isdigit()},
            "clock": time.perf_counter_ns() / 1e9,
            "kind": self.kind,
            "steps": self.steps,
            "counted": self.counted,
            "step_ns": self.step_ns,
            "parts": self.parts,
            "counts": self.counts,
            "places": [[*place, *numbers] for place, numbers in self.places.items()],
            "shapes": len(self.shapes),
            "series": self.series,
            "stand_in": self.stand_in,
            **self.facts,
        }


def _with_cells(state: dict[str, Any]) -> dict[str, Any]:
    """Return the state with the numbers of the notebook cells that its lines are in."""
    files = {place[1] for place in state["places"]} | {state[name][0] for name in SINGLE_LINES if name in state}
    return {**state, "cells": cells_of(files)}
