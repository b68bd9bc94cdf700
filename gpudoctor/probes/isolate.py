"""Ask workers side by side, each in a process of its own with a time limit.

A library that hangs, crashes, prints or exits takes nothing else with it: a small process beside this one starts the
workers, kills them at their limit, and tells how each ended. See workers/supervise.py.
"""

from __future__ import annotations

# What the supervisor needs too, so that a copy of this process has it already. All else is imported after its start.
import contextlib
import json
import os
import sys
import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import IO, Any, NoReturn, Protocol

    from gpudoctor.probes.host import Answer, Question, Setting

    class Process(Protocol):
        """A process that reads `stdin` and writes `stdout`."""

        @property
        def stdin(self) -> IO[bytes] | None: ...
        @property
        def stdout(self) -> IO[bytes] | None: ...
        def kill(self) -> None: ...
        def wait(self) -> int: ...


WORKERS = os.path.join(os.path.dirname(__file__), "workers")
PATIENCE_SECONDS = 5.0  # beyond the workers' limit, for starting each and for killing it if it does not end
AT_ONCE = ("nvml_devices", "cuda_driver", "read_kernel_log")  # they need no arguments, and most checks ask them
# Imported and not run as a script, so that its bytecode is cached.
SUPERVISE = "import sys; sys.path.insert(0, sys.argv[1]); import supervise; supervise.main()"


class Supervisor:
    """The process that runs the workers. It starts with this object, so that it is ready when it is asked.

    Raises:
        OSError: the process cannot be started.
    """

    def __init__(self, environ: Mapping[str, str], directory: str | os.PathLike[str]) -> None:
        self._questions: tuple[Question, ...] = ()
        self._asked: list[Question] = []
        self._patience = 0.0
        self._process = self._start(environ, directory)

    def _start(self, environ: Mapping[str, str], directory: str | os.PathLike[str]) -> Process:
        import subprocess

        return subprocess.Popen(
            [sys.executable, "-c", SUPERVISE, WORKERS],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=dict(environ),
            cwd=directory,
            start_new_session=True,
        )

    def prepare(self, questions: Iterable[Question], setting: Setting) -> None:
        """Put questions that are most likely asked: those that are not are dropped without an answer."""
        self._put({"questions": self._new(questions, setting)})

    def ask(self, questions: Iterable[Question], setting: Setting) -> None:
        """Put the questions, once."""
        self._questions = tuple(questions)
        self._patience = setting.timeout_seconds + PATIENCE_SECONDS * len(self._questions)
        order = {
            "questions": self._new(self._questions, setting),
            "timeout_seconds": setting.timeout_seconds,
            "wanted": [self._asked.index(question) for question in self._questions],
        }
        self._put(order)

    def _new(self, questions: Iterable[Question], setting: Setting) -> list[dict[str, Any]]:
        """Return the orders for what was not asked yet."""
        known = len(self._asked)
        self._asked += [question for question in questions if question not in self._asked]
        return [_order(number, self._asked[number], setting) for number in range(known, len(self._asked))]

    def _put(self, order: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it has died, which `answers` tells
            self._process.stdin.write(json.dumps(order).encode() + b"\n")
            self._process.stdin.flush()

    def answers(self) -> Iterator[tuple[str, Answer]]:
        """Wait, and yield the name of each question with its answer, in the order in which they come."""
        from gpudoctor.probes.host import Answer

        missing = [question.name for question in self._questions]
        watchdog = threading.Timer(self._patience, self._process.kill)
        watchdog.daemon = True
        watchdog.start()
        try:
            for ending, line in self._lines():
                name = self._asked[ending["number"]].name
                missing.remove(name)
                yield name, _understand(ending, line)
        finally:
            watchdog.cancel()
            self.dismiss()
        for name in missing:
            yield name, Answer(state="failed", detail="the process that runs the probes ended early")

    def _lines(self) -> Iterator[tuple[dict[str, Any], bytes]]:
        """Yield how each worker ended, with the line that it wrote."""
        assert self._process.stdout is not None
        for ending in self._process.stdout:
            line = self._process.stdout.readline()
            if not line.endswith(b"\n"):  # the process has died over it
                return
            yield json.loads(ending), line

    def dismiss(self) -> None:
        """End the process; at the end of its standard input it kills the workers that are still at work."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()
        self._process.wait()


class ForkedSupervisor(Supervisor):
    """A copy of this process, in its environment and directory: it starts at once, where an interpreter takes a while.

    For a process that has neither threads nor anything to lose: the command line's, before it imports anything.
    """

    def _start(self, environ: Mapping[str, str], directory: str | os.PathLike[str]) -> Process:
        streams = (sys.__stdin__, sys.__stdout__, sys.__stderr__)  # where one is closed, a pipe would take its number
        return _Copy() if hasattr(os, "fork") and all(streams) else super()._start(environ, directory)


class _Copy:
    """A copy of this process that supervises, and leaves by itself."""

    def __init__(self) -> None:
        orders, to_orders = os.pipe()
        from_answers, answers = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            _supervise(orders, answers)
        os.close(orders)
        os.close(answers)
        self.stdin: IO[bytes] = os.fdopen(to_orders, "wb")
        self.stdout: IO[bytes] = os.fdopen(from_answers, "rb")

    def kill(self) -> None:
        os.kill(self._pid, 9)

    def wait(self) -> int:
        return os.waitpid(self._pid, 0)[1]


def _supervise(orders: int, answers: int) -> NoReturn:
    """In the copy: take the orders, answer them and leave."""
    try:
        os.setsid()
        for source, target in ((orders, 0), (answers, 1), (os.open(os.devnull, os.O_WRONLY), 2)):
            os.dup2(source, target)
        os.closerange(3, answers + 2)  # the ends of the pipes, of which `answers` is the last, and the null device
        if not getattr(sys.flags, "safe_path", False):
            sys.path[0] = ""  # as for `python -c`: not the folder of the command
        sys.path.insert(0, WORKERS)
        import importlib

        importlib.import_module("supervise").main(AT_ONCE)
    finally:
        os._exit(70)


def _order(number: int, question: Question, setting: Setting) -> dict[str, Any]:
    return {
        "number": number,
        "worker": question.worker,
        "arguments": dict(question.arguments),
        "interpreter": (setting.interpreter or sys.executable) if question.fresh else None,
    }


def _understand(ending: dict[str, Any], line: bytes) -> Answer:
    """Return the answer of a worker that ended so, having written `line`."""
    from gpudoctor.probes.host import Answer

    try:
        reply = json.loads(line)
    except ValueError:
        reply = None
    if ending["state"] == "ended" and isinstance(reply, dict) and "facts" in reply:
        return Answer(state="ok", facts=reply["facts"], seconds=reply["seconds"])
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
