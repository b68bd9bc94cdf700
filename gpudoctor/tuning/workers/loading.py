"""How fast data comes to the device: a DataLoader with each number of worker processes, and copies from the host."""

import multiprocessing
import os
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch.utils.data import DataLoader, IterableDataset, RandomSampler

from gpudoctor.model.tuning import Loading, Transfer
from gpudoctor.tuning.settings import wait_fraction
from gpudoctor.tuning.workers.process_state import unchanged

ENDLESS = 2**31  # samples that the sampler draws: more than any measurement takes
PREFETCHED = 2  # batches that each worker of a DataLoader loads ahead


def loading(
    workload: Any, batch_size: int, step_seconds: float | None, limit_seconds: float, cpus: int | None = None
) -> tuple[Loading, ...]:
    """Return the rate with 0, 1, 2, 4, .. workers up to the number of CPUs; none if there is no data set.

    No more workers are tried once steps of `step_seconds` no longer wait. `workload.collate_fn` makes the batches where
    there is one. On return, and on any exception, the worker processes have ended.

    Raises:
        Exception: what the data set raises, with its traceback, from a worker too.
    """
    dataset = getattr(workload, "dataset", None)
    if dataset is None:
        return ()
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    counts = worker_counts(cpus or usable or 1)
    measured = []
    for workers in counts:
        batch_seconds, samples = _measure(workload, dataset, batch_size, workers, limit_seconds / len(counts))
        if batch_seconds is None:
            break
        waiting = wait_fraction(batch_seconds, step_seconds, workers)
        rate = samples / batch_seconds
        measured.append(Loading(workers=workers, samples_per_second=rate, wait_fraction=waiting))
        if waiting == 0:
            break
    return tuple(measured)


def worker_counts(cpus: int) -> tuple[int, ...]:
    """Return 0, the powers of two below `cpus`, and `cpus`."""
    powers = (2**exponent for exponent in range(cpus.bit_length()))
    return (0, *(power for power in powers if power < cpus), cpus)


def _measure(
    workload: Any, dataset: Any, batch_size: int, workers: int, limit_seconds: float
) -> tuple[float | None, int]:
    """Return the seconds and the samples of a batch; None for the seconds if this number of workers cannot run."""
    size = min(batch_size, len(dataset)) if hasattr(dataset, "__len__") else batch_size
    loader = _loader(workload, dataset, size, workers)
    try:
        return _batch_seconds(loader, workers, limit_seconds), size
    except Exception:
        if workers and not _forks():  # the data set cannot be sent to a new interpreter; without workers it did load
            return None, size
        raise


def _loader(workload: Any, dataset: Any, batch_size: int, workers: int) -> Any:
    """Return a loader of full batches in random order, that continues beyond the end of the data set."""
    iterable = isinstance(dataset, IterableDataset)
    return DataLoader(
        dataset,
        batch_size=batch_size,
        sampler=None if iterable else RandomSampler(dataset, replacement=True, num_samples=ENDLESS),
        collate_fn=getattr(workload, "collate_fn", None),
        drop_last=True,
        num_workers=workers,
        multiprocessing_context="fork" if workers and _forks() else None,
    )


def _forks() -> bool:
    """Return whether workers can be forked.

    A new interpreter could not import a user's file that was loaded by its path. Python 3.14 starts one by default.
    """
    return sys.platform.startswith("linux") and "fork" in multiprocessing.get_all_start_methods()


def _batch_seconds(loader: Any, workers: int, limit_seconds: float) -> float | None:
    """Return the mean seconds of a batch once what the workers loaded ahead is used up; None if there is too little.

    limit_seconds: after which no further batch is waited for. Two batches are, whatever the limit.
    """
    deadline = time.perf_counter() + limit_seconds
    marks: list[float] = []
    with unchanged(), _batches(loader) as batches:  # the sampler draws from torch's random state
        for _ in batches:
            marks.append(time.perf_counter())
            if marks[-1] >= deadline and len(marks) > 1:
                break
    ahead = 0 if workers == 0 else min(PREFETCHED * workers, len(marks) // 2)
    steady = marks[ahead:]
    return (steady[-1] - steady[0]) / (len(steady) - 1) if len(steady) > 1 else None


@contextmanager
def _batches(loader: Any) -> Iterator[Iterator[Any]]:
    """Give the loader's iterator, and end its workers afterwards, also after an interruption."""
    with warnings.catch_warnings():
        # Python 3.12 on warns of fork() next to threads; workers of torch only load, as on every Linux before 3.14.
        warnings.filterwarnings("ignore", message=".*fork.*", category=DeprecationWarning)
        iterator = iter(loader)
        try:
            yield iterator
        finally:
            shutdown = getattr(iterator, "_shutdown_workers", None)  # only the iterator of several processes has it
            if shutdown is not None:
                shutdown()


MAXIMUM_BYTES = 256 * 2**20
QUEUED = 4  # copies that one synchronisation ends
REPEATS = 5  # such queues; the median counts
WAYS = tuple((pinned, non_blocking) for pinned in (False, True) for non_blocking in (False, True))


def transfers(device: str, batch_bytes: int, limit_seconds: float = 10.0) -> tuple[Transfer, ...]:
    """Return the rate of each way; none if the device is the host, and none that cannot be done here.

    Each rate is that of a queue of copies with one synchronisation at its end, as a training loop makes them. Pinned
    memory has two: one counts the copy into it, which a loop pays that calls pin_memory() itself; the other is of the
    copy to the device alone, all that is left if a thread of the DataLoader does the pinning. By the first, pinned
    memory is often slower than pageable (docs.pytorch.org, "A guide on good usage of non_blocking and pin_memory()").

    batch_bytes: size of a real batch; larger ones are measured with 256 MiB.
    limit_seconds: after which no further way is tried.

    Raises:
        RuntimeError: what arrived on the device is not what was sent.
    """
    if not device.startswith("cuda"):
        return ()
    deadline = time.monotonic() + limit_seconds
    count, generator = max(1, min(batch_bytes, MAXIMUM_BYTES)), torch.Generator().manual_seed(0)
    source = torch.randint(256, (count,), dtype=torch.uint8, generator=generator)
    measured = (_transfer(source, device, *way) for way in WAYS if time.monotonic() < deadline)
    return tuple(transfer for transfer in measured if transfer is not None)


def _transfer(source: Any, device: str, pinned: bool, non_blocking: bool) -> Transfer | None:
    """Return the rate; None if the host has no memory to pin."""
    synchronize = partial(torch.cuda.synchronize, device)
    if not pinned:
        rate = copy_rate(lambda: source.to(device, non_blocking=non_blocking), synchronize, source)
        return Transfer(pinned=False, non_blocking=non_blocking, gb_s=rate)
    try:
        held = source.pin_memory()
    except RuntimeError:  # containers and WSL limit how much may be locked
        return None
    rate = copy_rate(lambda: source.pin_memory().to(device, non_blocking=non_blocking), synchronize, source)
    alone = copy_rate(lambda: held.to(device, non_blocking=non_blocking), synchronize, source)
    return Transfer(pinned=True, non_blocking=non_blocking, gb_s=rate, copy_gb_s=alone)


def copy_rate(
    copy: Callable[[], Any],
    synchronize: Callable[[], None],
    source: Any,
    clock: Callable[[], float] = time.perf_counter,
) -> float:
    """Return the rate of `copy`, in 10⁹ bytes a second: the median of several queues, after one that warms up.

    Raises:
        RuntimeError: the copy differs from `source`.
    """
    seconds = []
    for _ in range(1 + REPEATS):
        synchronize()
        started = clock()
        copies = [copy() for _ in range(QUEUED)]
        synchronize()
        seconds.append(clock() - started)
        if not torch.equal(copies[-1].cpu(), source):
            raise RuntimeError("a copy from host to device changed the data")
        del copies
    return float(QUEUED * source.numel() * source.element_size() / statistics.median(seconds[1:]) / 1e9)
