"""Run one worker in this process and write its facts to standard output as one JSON object.

    python run.py WORKER.py < arguments.json

Standard library only, from Python 3.8 on: it runs under the interpreter that is diagnosed. Whatever a library prints
goes to standard error, and the process leaves through `os._exit`, so that a crash during teardown cannot take the
answer with it.
"""

from __future__ import annotations

import json
import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:  # the module typing takes as long to import as this one to run
    from typing import Any, Callable, Mapping, Tuple

    Collect = Callable[[Mapping[str, Any]], Mapping[str, Any]]


def answer(collect: Collect, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the worker's `collect` found and how many seconds it took, or how it failed."""
    started = time.monotonic()
    try:
        return {"facts": collect(arguments), "seconds": time.monotonic() - started}
    except BaseException as error:  # a library may raise SystemExit or worse on import
        import traceback

        last = traceback.format_exception_only(type(error), error)[-1].strip()
        return {"error": last, "traceback": traceback.format_exc()[-4000:]}


def deliver(*questions: Tuple[Collect, Mapping[str, Any]]) -> None:
    """Write the answer to each question, a worker's `collect` with its arguments, to the standard output of now.

    Each is one line. Then leave the process.
    """
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    for collect, arguments in questions:
        json.dump(answer(collect, arguments), channel, default=str)
        channel.write("\n")
        channel.flush()
    os._exit(0)


def load(path: str) -> Collect:
    """Return the `collect` of the worker in the file at `path`.

    Raises:
        ImportError: the file cannot be loaded.
    """
    import importlib.util

    spec = importlib.util.spec_from_file_location("gpudoctor_worker", path)
    if spec is None or spec.loader is None:
        raise ImportError(path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    collect: Collect = module.collect
    return collect


if __name__ == "__main__":
    del sys.path[0]  # this folder: what is imported from here on must come from the interpreter diagnosed
    deliver((load(sys.argv[1]), json.load(sys.stdin)))
