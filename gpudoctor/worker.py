"""A worker process's own side: requests come on standard input, answers leave on standard output, a line of JSON each.

Whatever else is printed goes to standard error. When standard input ends, which it also does if the process that
started this one dies, this one ends with everything that it started. Standard library only, from Python 3.8 on.
"""

from __future__ import annotations

import faulthandler
import json
import os
import queue
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress

PR_SET_CHILD_SUBREAPER = 36  # of <linux/prctl.h>


def take_over_streams() -> tuple[Iterator[Mapping[str, object]], Callable[[Mapping[str, object]], None]]:
    """Return the requests, as they come, and the function that writes an answer."""
    _adopt_orphans()
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    faulthandler.enable(all_threads=False)
    pending: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(requests, pending), daemon=True).start()

    def answer(value: Mapping[str, object]) -> None:
        answers.write(json.dumps(value, default=str).encode() + b"\n")
        answers.flush()

    return map(json.loads, iter(pending.get, b"")), answer


def _listen(requests: Iterable[bytes], pending: queue.SimpleQueue[bytes]) -> None:
    for line in requests:
        pending.put(line)
    end_group()


def end_group() -> None:
    """End this process, with everything that it started if it leads a group."""
    kill_all(descendants(os.getpid()))
    if hasattr(os, "killpg") and os.getpgrp() == os.getpid():
        os.killpg(os.getpid(), signal.SIGKILL)
    os._exit(0)


def _adopt_orphans() -> None:
    """Become the parent of what a child leaves behind, so that it is known when this process is ended. Linux only."""
    if sys.platform == "linux":
        with suppress(Exception):  # a Python without ctypes
            import ctypes

            ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, True)


def descendants(pid: int) -> list[int]:
    """Return the processes that this one started, with theirs, in whatever session; none if /proc does not say."""
    found: list[int] = []
    with suppress(OSError):  # it has ended
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children", encoding="ascii") as listed:
                found += map(int, listed.read().split())
    return [*found, *(one for child in found for one in descendants(child))]


def kill_all(pids: Iterable[int]) -> None:
    """Kill the processes; those that have ended are skipped."""
    for pid in pids:
        with suppress(OSError):
            os.kill(pid, signal.SIGKILL)
