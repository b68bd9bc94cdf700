"""The loop of a worker: an order on the first line, then a request in and an answer out, each one line of JSON.

Standard input is the parent's only hold on this process: when it ends, the process ends with everything it started.
Standard output is the channel of the answers; what anybody else prints goes to standard error.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import queue
import signal
import sys
import threading
from collections.abc import Mapping
from importlib import import_module
from typing import IO, Any, NoReturn

from gpudoctor.errors import UsageError
from gpudoctor.model.codec import to_json
from gpudoctor.tuning.workers.failures import LIBRARY, USAGE, WORKLOAD, Failure, failure_of

_PR_SET_PDEATHSIG = 1  # linux/prctl.h


class Unusable(Exception):
    """Library or device cannot be used at all; the message is one line."""


def main() -> NoReturn:
    """Serve until standard input ends."""
    requests, channel = _take_over_streams()
    faulthandler.enable(all_threads=False)
    order = json.loads(requests.readline())
    _die_with_parent(int(order["parent"]))
    pending: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(requests, pending), daemon=True).start()
    session: Any = None
    while True:
        request = json.loads(pending.get())
        try:
            session = session or _open_session(order)
            value = getattr(session, f"answer_{request['ask']}")(request)
        except BaseException as error:  # user code may end the program
            value = _understand(error, session)
        if isinstance(value, Failure) and value.kind == WORKLOAD and not value.poisons and session is not None:
            value = session.judged(value, request)
        name = "failure" if isinstance(value, Failure) else "value"
        channel.write(json.dumps({name: to_json(value)}).encode() + b"\n")
        channel.flush()


def _take_over_streams() -> tuple[IO[bytes], IO[bytes]]:
    """Return the streams of requests and answers, and put others in their place for everybody else."""
    requests, channel = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    return requests, channel


def _listen(requests: IO[bytes], pending: queue.SimpleQueue[bytes]) -> None:
    """Hand the requests on; at the end of them, which comes with the end of the parent, end everything."""
    for line in requests:
        pending.put(line)
    _end_group()


def _end_group() -> NoReturn:
    if hasattr(os, "killpg") and os.getpgrp() == os.getpid():
        os.killpg(os.getpid(), signal.SIGKILL)
    os._exit(0)


def _die_with_parent(parent: int) -> None:
    """Let the kernel end this process with the thread that started it: one that waits in a driver reads no input."""
    if sys.platform != "linux":
        return
    with contextlib.suppress(Exception):
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before the call
        _end_group()


def _open_session(order: Mapping[str, Any]) -> Any:
    """Return the session. Its modules import the library, which may be broken.

    Raises:
        UsageError: there is no such device.
        Unusable: library or device do not work.
    """
    library = "numpy" if order["arrays"] else "torch"
    try:
        import_module(library)
    except BaseException as error:
        raise Unusable(f"{library} cannot be imported: {_one_line(error)}") from None
    try:
        return import_module("gpudoctor.tuning.workers.session").Session(order)
    except UsageError:
        raise
    except Exception as error:
        raise Unusable(f"device {order['device']} cannot be used: {_one_line(error)}") from None


def _one_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {lines[0][:300]}"


def _understand(error: BaseException, session: Any) -> Failure:
    if isinstance(error, UsageError):
        return Failure(kind=USAGE, detail=str(error))
    if isinstance(error, Unusable):
        return Failure(kind=LIBRARY, detail=str(error))
    return failure_of(error, memory_full=session is not None and session.memory_is_full())
