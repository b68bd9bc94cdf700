"""Ask workers side by side, each in a process of its own with a time limit.

A library that hangs, crashes, prints or exits takes nothing else with it: a small process beside this one starts the
workers, kills them at their limit, and tells how each ended. See workers/supervise.py.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading

TYPE_CHECKING = False
if TYPE_CHECKING:  # nothing else is imported before the supervisor starts: it takes as long to start as the rest
    from collections.abc import Iterable, Mapping
    from typing import Any

    from gpudoctor.host import Answer, Question, Setting

WORKERS = os.path.join(os.path.dirname(__file__), "workers")
PATIENCE_SECONDS = 5.0  # beyond the workers' limit, for starting each and for killing it if it does not end
# Imported and not run as a script, so that its bytecode is cached.
SUPERVISE = "import sys; sys.path.insert(0, sys.argv[1]); import supervise; supervise.main()"


class Supervisor:
    """The process that runs the workers. It starts with this object, so that it is ready when it is asked.

    Raises:
        OSError: the process cannot be started.
    """

    def __init__(self, environ: Mapping[str, str], directory: str | os.PathLike[str]) -> None:
        self._questions: tuple[Question, ...] = ()
        self._patience = 0.0
        self._process = subprocess.Popen(
            [sys.executable, "-c", SUPERVISE, WORKERS],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=dict(environ),
            cwd=directory,
            start_new_session=True,
        )

    def ask(self, questions: Iterable[Question], setting: Setting) -> None:
        """Put the questions, once."""
        import json

        self._questions = tuple(questions)
        self._patience = setting.timeout_seconds + PATIENCE_SECONDS * len(self._questions)
        order = {
            "timeout_seconds": setting.timeout_seconds,
            "questions": [_order(question, setting) for question in self._questions],
        }
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it has died, which `answers` tells
            self._process.stdin.write(json.dumps(order).encode() + b"\n")
            self._process.stdin.flush()

    def answers(self) -> dict[str, Answer]:
        """Wait, and return the answer to each question by its name."""
        import json

        from gpudoctor.host import Answer

        watchdog = threading.Timer(self._patience, self._process.kill)
        watchdog.daemon = True
        watchdog.start()
        assert self._process.stdout is not None
        try:
            lines = self._process.stdout.read().split(b"\n")[:-1]
        finally:
            watchdog.cancel()
            self.dismiss()
        pairs = zip((json.loads(line) for line in lines[::2]), lines[1::2], strict=False)
        answers = {ending["name"]: _understand(ending, line) for ending, line in pairs}
        lost = Answer(state="failed", detail="the process that runs the probes ended early")
        return {question.name: answers.get(question.name, lost) for question in self._questions}

    def dismiss(self) -> None:
        """End the process; at the end of its standard input it kills the workers that are still at work."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()
        self._process.wait()


def _order(question: Question, setting: Setting) -> dict[str, Any]:
    return {
        "name": question.name,
        "worker": question.worker,
        "arguments": dict(question.arguments),
        "interpreter": (setting.interpreter or sys.executable) if question.fresh else None,
    }


def _understand(ending: dict[str, Any], line: bytes) -> Answer:
    """Return the answer of a worker that ended so, having written `line`."""
    import json

    from gpudoctor.host import Answer

    try:
        reply = json.loads(line)
    except ValueError:
        reply = None
    if ending["state"] == "ended" and isinstance(reply, dict) and "facts" in reply:
        return Answer(state="ok", facts=reply["facts"], seconds=ending["seconds"])
    timed_out = ending["state"] == "timed-out"
    lines = (_what_went_wrong(ending, reply), ending["errors"])
    detail = "\n".join(text for text in lines if text)
    return Answer(state="timed-out" if timed_out else "failed", detail=detail, seconds=ending["seconds"])


def _what_went_wrong(ending: dict[str, Any], reply: Any) -> str:
    if ending["state"] == "timed-out":
        return f"no answer in {ending['seconds']:g} s"
    if ending["state"] == "not-started":
        return "its interpreter cannot be started"
    if isinstance(reply, dict):
        return f"{reply.get('error')}\n{reply.get('traceback', '')}".strip()
    return _death(ending["status"])


def _death(status: int) -> str:
    if status >= 0:
        return f"ended with exit status {status} and no answer"
    import signal

    try:
        return f"killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"killed by signal {-status}"
