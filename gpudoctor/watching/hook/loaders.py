"""Loaders: how long the training thread waits for a DataLoader, and how it is set."""

from __future__ import annotations

import functools
import sys
import time
import weakref
from contextlib import suppress
from typing import Any

from .patching import Patching


def patch_loaders(patching: Patching) -> None:
    """Time what the training thread waits for a DataLoader, and note its settings."""
    made: Any = weakref.WeakKeyDictionary()
    _patch_creation(patching, made)
    _patch_iteration(patching, made)
    _patch_next(patching)


def _patch_creation(patching: Patching, made: Any) -> None:
    from torch.utils.data import DataLoader

    original: Any = DataLoader.__init__

    @functools.wraps(original)
    def create(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        with suppress(Exception):
            made[self] = patching.places.of(sys._getframe(1))

    patching.replace(DataLoader, "__init__", create)


def _patch_iteration(patching: Patching, made: Any) -> None:
    from torch.utils.data import DataLoader

    recorder = patching.recorder
    original: Any = DataLoader.__iter__

    @functools.wraps(original)
    def begin(loader: Any) -> Any:
        begun = time.perf_counter_ns()
        iterator = original(loader)
        with suppress(Exception):
            patching.pins = bool(loader.pin_memory)
            epochs = recorder.facts.get("loader", {}).get("epochs", 0) + 1
            recorder.facts["loader"] = {**_settings(loader), "made": made.get(loader, ("", 0)), "epochs": epochs}
            if recorder.is_here():
                recorder.spent("loader", begun)
        return iterator

    patching.replace(DataLoader, "__iter__", begin)


def _settings(loader: Any) -> dict[str, Any]:
    from torch.utils.data import IterableDataset

    return {
        "workers": loader.num_workers,
        "pin_memory": bool(loader.pin_memory),
        "batch_size": loader.batch_size,
        "persistent_workers": bool(getattr(loader, "persistent_workers", False)),
        "prefetch_factor": getattr(loader, "prefetch_factor", None),
        "dataset": type(loader.dataset).__name__,
        "is_iterable": isinstance(loader.dataset, IterableDataset),
        "dataset_length": len(loader.dataset) if hasattr(type(loader.dataset), "__len__") else None,
    }


def _patch_next(patching: Patching) -> None:
    from torch.utils.data.dataloader import _BaseDataLoaderIter

    recorder, places = patching.recorder, patching.places
    original: Any = _BaseDataLoaderIter.__next__

    @functools.wraps(original)
    def timed(iterator: Any) -> Any:
        if recorder.kind != "optimizer" and not recorder.is_inside:
            recorder.step_from("loader", type(iterator).__name__)
        if not recorder.is_here():
            return original(iterator)
        recorder.is_inside, recorder.is_optimizing = True, False
        begun = time.perf_counter_ns()
        try:
            return original(iterator)
        finally:
            recorder.is_inside = False
            recorder.after_input(recorder.spent("loader", begun))
            recorder.count("batches")
            if recorder.is_sampled:
                recorder.at("loader", places.of(sys._getframe(1)), 0)

    patching.replace(_BaseDataLoaderIter, "__next__", timed)
