"""The inside view: what only the watched program itself can see. Runs in its processes, not in gpudoctor's.

`gpudoctor.watching.inside` puts a folder with a `sitecustomize.py` first on PYTHONPATH. Each Python process of the
program then calls `start` before its own code, also those that torchrun, a shell script or multiprocessing start. The
user's own `sitecustomize` still runs, and the folder leaves `sys.path` again. Nothing is imported for the program:
`start` waits until the program itself has imported torch, and then patches once (see `patches`).

Each process that trains writes one small file, at most every two seconds and at its end, so that a program that is
killed still leaves a report. Its size does not grow with the run. The hook draws no random numbers, waits for the GPU
only to count the kernels of one step (`closer_look`), and switches itself off if anything in it fails. What costs the
most, finding the user's line, happens in a few steps only (`Recorder.is_sampled`).

Standard library only, from Python 3.8 on: the program's interpreter need not have gpudoctor.
"""

from __future__ import annotations

import atexit
import importlib.machinery
import importlib.util
import os
import sys
from contextlib import suppress
from typing import Any

from .recorder import Recorder

recorders: list[Recorder] = []
"""That of this process, once `start` was called."""

patchings: list[Any] = []
"""What was patched, once torch was imported: the benchmark switches it off and on."""


def start(folder: str) -> None:
    """Patch torch as soon as the program has imported it. folder: where each process leaves its file."""
    if recorders:  # the entry was executed twice
        return
    recorder = Recorder(folder)
    recorders.append(recorder)
    recorder.write()
    after = _AfterTorch(recorder)
    if "torch" in sys.modules:  # the user's own sitecustomize imports it
        after.patch(sys.modules["torch"])
    else:
        sys.meta_path.insert(0, after)
    atexit.register(recorder.write)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=recorder.begin_in_child)


class _AfterTorch:
    """A finder that finds nothing itself: it lets torch be imported as always, and then patches it."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def find_spec(self, name: str, _path: Any = None, _target: Any = None) -> importlib.machinery.ModuleSpec | None:
        """Return the real spec of torch; None for every other module."""
        if name != "torch":
            return None
        with suppress(ValueError):
            sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        loader: Any = spec.loader
        execute = loader.exec_module

        def exec_module(module: Any) -> None:
            with suppress(AttributeError):
                del loader.exec_module
            execute(module)
            self.patch(module)

        with suppress(AttributeError):  # a loader that takes no attributes: the program runs unwatched
            loader.exec_module = exec_module
        return spec

    def patch(self, torch: Any) -> None:
        """Patch torch. If that fails, the program goes on, and the report says why nothing was seen."""
        try:
            from .patches import install

            patchings.append(install(torch, self._recorder))
            self._recorder.write()  # a program that is killed early has imported torch all the same
        except Exception as error:
            self._recorder.problem = f"{type(error).__name__}: {error}"
