"""The loop of a tuning worker: the order comes first, then each request gets an answer."""

import contextlib
import gc
import os
import signal
import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from gpudoctor.errors import UsageError
from gpudoctor.model.codec import to_json
from gpudoctor.tuning.workers.failures import LIBRARY, USAGE, WORKLOAD, Failure, failure_of, one_line
from gpudoctor.worker import end_group, take_over_streams

_PR_SET_PDEATHSIG = 1  # linux/prctl.h


class Unusable(Exception):
    """Library or device cannot be used at all; the message is one line."""


def main() -> None:
    """Serve until standard input ends, and with it this process."""
    requests, answer = take_over_streams()
    order: Any = next(requests)
    _die_with_parent(order["parent"])
    session: Any = None
    for request in requests:
        try:
            session = session or _open_session(order)
            value = getattr(session, f"answer_{request['ask']}")(request)
        except UsageError as error:
            value = Failure(kind=USAGE, detail=str(error))
        except Unusable as error:
            value = Failure(kind=LIBRARY, detail=str(error))
        except BaseException as error:  # user code may end the program
            value = failure_of(error, memory_full=session is not None and session.memory_is_full())
        if isinstance(value, Failure) and value.kind == WORKLOAD and not value.poisons and session is not None:
            value = session.judged(value, request)
        name = "failure" if isinstance(value, Failure) else "value"
        answer({name: to_json(value)})


def _die_with_parent(parent: int) -> None:
    """Let the kernel end this process with the thread that started it: one that waits in a driver reads no input."""
    if sys.platform != "linux":
        return
    with contextlib.suppress(Exception):
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before the call
        end_group()


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
        raise Unusable(f"{library} cannot be imported: {one_line(error)}") from None
    try:
        session = import_module("gpudoctor.tuning.workers.session").Session(order)
        gc.freeze()  # a trial collects garbage several times: what torch has imported takes 0.2 s each time
        return session
    except UsageError:
        raise
    except Exception as error:
        raise Unusable(f"device {order['device']} cannot be used: {one_line(error)}") from None
