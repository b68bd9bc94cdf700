"""What the device reaches at best: a large matrix product in one precision, and a large copy.

Random data with zero mean: zeros need less power, and ran 13 % faster on an H200.
"""

import statistics
import time
from collections.abc import Callable
from functools import partial
from operator import matmul
from typing import Any

from gpudoctor.tuning.workers.devices import Device
from gpudoctor.tuning.workers.library import Library

SIZES = (512, 1024, 2048, 4096, 8192)
"""Rows and columns of the matrices; 8192 in bf16 is above the level-2 cache of every device up to the B200."""

REPEATS = 9
MEMORY_SHARE = 0.25
"""Of what is free, for all matrices or both sides of the copy."""

COPY_BYTES = {"cuda": 2**30, "mps": 2**28, "cpu": 2**28}

LIMIT_SECONDS = {"cuda": 1.0, "mps": 1.0, "cpu": 0.35}
"""For the timed products; finding the size takes about as long again as the largest of them."""


def product_tflops(device: Device, precision: Any, free_bytes: int | None, library: Library) -> float | None:
    """Return the rate of the median product, in TFLOP/s; None if not even the smallest fits.

    precision: as `make_precision` returns it; its switches are set here.
    """
    precision.apply_switches()
    item_bytes = library.item_bytes(precision.name)
    best: float | None = None
    for size in SIZES:
        if free_bytes is not None and 3 * size * size * item_bytes > MEMORY_SHARE * free_bytes:
            break
        left, right = library.matrix(precision.name, size), library.matrix(precision.name, size)
        seconds = _median_seconds(device, partial(matmul, left, right))
        del left, right
        device.free_memory()
        rate = library.operations * size**3 / seconds / 1e12
        best = max(best or 0.0, rate)
        if 8 * seconds * REPEATS > LIMIT_SECONDS[device.kind]:  # the next size has eight times the work
            break
    return best


def copy_gb_s(device: Device, free_bytes: int | None, library: Library) -> float | None:
    """Return the rate of a copy inside the device's memory, bytes read plus bytes written, in 10⁹ bytes a second."""
    size = COPY_BYTES[device.kind]
    if free_bytes is not None:
        size = min(size, int(MEMORY_SHARE * free_bytes / 2))
    count = size // 4
    if count == 0:
        return None
    source, target = library.vector(count), library.vector(count)

    def copy() -> None:
        target[...] = source

    return 2 * 4 * count / _median_seconds(device, copy) / 1e9


def _median_seconds(device: Device, work: Callable[[], object]) -> float:
    """Return the median seconds of REPEATS runs after two for warming up, fewer if the limit ends them."""
    work()
    work()
    device.synchronize()
    deadline = time.perf_counter() + LIMIT_SECONDS[device.kind]
    seconds, _ = device.time_steps(work, REPEATS, deadline)
    return statistics.median(seconds)
