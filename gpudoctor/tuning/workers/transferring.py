"""How fast batches get from the host to the device: pageable and pinned memory, waiting for each copy and not.

Each rate is that of a queue of copies with one synchronisation at its end, as a training loop makes them. For pinned
memory there are two: one counts the copy into it, which a loop pays that calls pin_memory() itself; the other is of
the copy to the device alone, all that is left where a thread of the DataLoader does the pinning. By the first, pinned
memory is often slower than pageable (docs.pytorch.org, "A guide on good usage of non_blocking and pin_memory()").
"""

import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from gpudoctor.model.tuning import Transfer

MAXIMUM_BYTES = 256 * 2**20
QUEUED = 4  # copies that one synchronisation ends
REPEATS = 5  # such queues, of which the median counts
WAYS = tuple((pinned, non_blocking) for pinned in (False, True) for non_blocking in (False, True))


def transfers(device: str, batch_bytes: int, limit_seconds: float = 10.0) -> tuple[Transfer, ...]:
    """Return the rate of each way; none where the device is the host, and none that cannot be done here.

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
    measured = (_measure(source, device, *way) for way in WAYS if time.monotonic() < deadline)
    return tuple(transfer for transfer in measured if transfer is not None)


def _measure(source: Any, device: str, pinned: bool, non_blocking: bool) -> Transfer | None:
    """Return the rate; None where the host has no memory to pin."""
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
            raise RuntimeError("a copy from host to device arrived changed: the data differ")
        del copies
    return float(QUEUED * source.numel() * source.element_size() / statistics.median(seconds[1:]) / 1e9)
