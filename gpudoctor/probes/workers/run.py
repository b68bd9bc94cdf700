"""A process that runs probe workers: each request names one, and its facts are the answer.

Standard library only, from Python 3.8 on: it may run under the interpreter that is diagnosed.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Mapping

from gpudoctor.worker import take_over_streams

TRACEBACK_CHARACTERS = 4000


def main() -> None:
    """Answer each request: `worker`, the name of a module in this folder, and `arguments` for its `collect`."""
    requests, answer = take_over_streams()
    for request in requests:
        answer(_facts_of(request["worker"], request["arguments"]))


def _facts_of(worker: object, arguments: object) -> Mapping[str, object]:
    """Return what the worker found and how many seconds it took, or how it failed."""
    started = time.monotonic()
    try:
        facts = importlib.import_module(f"gpudoctor.probes.workers.{worker}").collect(arguments)
        return {"facts": facts, "seconds": time.monotonic() - started}
    except BaseException as error:  # a library may raise SystemExit or worse on import
        import traceback  # takes as long to import as most questions to answer

        last = traceback.format_exception_only(type(error), error)[-1].strip()
        return {"error": last, "traceback": traceback.format_exc()[-TRACEBACK_CHARACTERS:]}
