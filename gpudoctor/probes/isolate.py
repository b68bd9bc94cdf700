"""Run workers side by side, each in a process of its own with a time limit.

A library that hangs, crashes, prints or exits takes nothing else with it: the worker's process group is killed at the
limit, a death by signal is named, and the last lines of standard error are kept.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import IO, Any, NamedTuple, Protocol

from gpudoctor.host import Answer, Question, Setting

WORKERS = os.path.join(os.path.dirname(__file__), "workers")
MAXIMUM_ANSWER_BYTES = 64 * 2**20
STDERR_BYTES_KEPT = 4000
GRACE_SECONDS = 2.0  # a process that waits inside the driver ignores SIGKILL: it is left behind after this long


class Process(Protocol):
    """A started worker."""

    @property
    def pid(self) -> int:
        """Its process id, which is its process group's id too."""

    def wait(self) -> int:
        """Return the exit status, negative for a signal."""


class Running:
    """A worker at work: its process, the pipe of its answer and the file of its standard error."""

    def __init__(self, question: Question, process: Process, output: IO[bytes], errors: IO[bytes]) -> None:
        self.question = question
        self.process = process
        self.output = output
        self.errors = errors
        self.started = time.monotonic()
        self.answer = b""
        self.status: int | None = None
        self.seconds = 0.0

    def listen(self) -> None:
        """Read the answer, one line, then wait for the end. A process that the worker left behind is not waited for."""
        self.answer = self.output.readline(MAXIMUM_ANSWER_BYTES)
        self.status = self.process.wait()
        self.seconds = time.monotonic() - self.started


def start(questions: Iterable[Question], setting: Setting) -> list[Running]:
    """Start a worker for each question. Those that need a fresh interpreter come first, for they take longest.

    Raises:
        OSError: the interpreter cannot be started.
    """
    ordered = sorted(questions, key=lambda question: not _needs_interpreter(question))
    return [_spawn(question, setting) if _needs_interpreter(question) else _fork(question) for question in ordered]


def collect(workers: Iterable[Running], timeout_seconds: float) -> dict[str, Answer]:
    """Return the answer of each worker by its question's name, waiting at most `timeout_seconds` from its start."""
    listeners = [(worker, threading.Thread(target=worker.listen, daemon=True)) for worker in workers]
    for _, thread in listeners:
        thread.start()
    try:
        return {worker.question.name: _finish(worker, thread, timeout_seconds) for worker, thread in listeners}
    finally:
        for worker, thread in listeners:
            _dismiss(worker, thread)


def _needs_interpreter(question: Question) -> bool:
    """Tell whether a copy of this process cannot answer: a fresh interpreter is asked for, or threads forbid a fork."""
    return question.fresh or not hasattr(os, "fork") or threading.active_count() > 1


def _scratch_file() -> IO[bytes]:
    """Return an unnamed file for a worker's standard error; `_dismiss` closes it."""
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("errors"), "w+b")
    import tempfile

    return tempfile.TemporaryFile()


def _spawn(question: Question, setting: Setting) -> Running:
    interpreter = setting.interpreter if question.fresh and setting.interpreter else sys.executable
    script = [os.path.join(WORKERS, "run.py"), os.path.join(WORKERS, f"{question.worker}.py")]
    errors = _scratch_file()
    process = subprocess.Popen(
        [interpreter, "-X", "faulthandler", *script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        env=dict(setting.environ),
        cwd=setting.directory,
        start_new_session=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    with contextlib.suppress(BrokenPipeError), process.stdin as stdin:
        stdin.write(json.dumps(dict(question.arguments)).encode())
    return Running(question, process, process.stdout, errors)


class _Copy(NamedTuple):
    """A forked copy of this process."""

    pid: int

    def wait(self) -> int:
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def _fork(question: Question) -> Running:
    run = import_module("gpudoctor.probes.workers.run")  # before the fork: once for all copies
    worker = import_module(f"gpudoctor.probes.workers.{question.worker}")
    reader, writer = os.pipe()
    errors = _scratch_file()
    pid = os.fork()
    if pid == 0:
        _work(lambda: run.deliver(worker.collect, question.arguments), writer, errors.fileno())
    os.close(writer)
    return Running(question, _Copy(pid), os.fdopen(reader, "rb"), errors)


def _work(deliver: Callable[[], None], output: int, errors: int) -> None:
    """In the copy: deliver the answer and leave the process."""
    try:
        os.setsid()
        gc.disable()  # a collection would touch, and so copy, all memory that is still shared
        for source, target in ((os.open(os.devnull, os.O_RDONLY), 0), (output, 1), (errors, 2)):
            os.dup2(source, target)
        deliver()
    except BaseException as error:
        os.write(2, f"{type(error).__name__}: {error}\n".encode())
    finally:
        os._exit(70)


def _finish(worker: Running, listener: threading.Thread, timeout_seconds: float) -> Answer:
    """Return the answer of one worker, killing it at its limit."""
    listener.join(max(0.0, worker.started + timeout_seconds - time.monotonic()))
    if listener.is_alive():
        _kill(worker.process)
        listener.join(GRACE_SECONDS)
        return _no_answer("timed-out", f"no answer in {timeout_seconds:g} s", worker)
    try:
        reply: dict[str, Any] = json.loads(worker.answer)
    except ValueError:
        return _no_answer("failed", _death(worker.status), worker)
    if "facts" not in reply:
        return _no_answer("failed", f"{reply.get('error')}\n{reply.get('traceback', '')}", worker)
    return Answer(state="ok", facts=reply["facts"], seconds=worker.seconds)


def _dismiss(worker: Running, listener: threading.Thread) -> None:
    """Leave nothing at work, after Ctrl-C too, and nothing open that no thread reads."""
    if listener.is_alive():
        _kill(worker.process)
        listener.join(GRACE_SECONDS)
    worker.errors.close()
    if not listener.is_alive():
        worker.output.close()


def _no_answer(state: str, detail: str, worker: Running) -> Answer:
    lines = [detail.strip(), _last_words(worker.errors)]
    seconds = time.monotonic() - worker.started
    return Answer(state=state, detail="\n".join(line for line in lines if line), seconds=seconds)


def _death(status: int | None) -> str:
    if status is None or status >= 0:
        return f"ended with exit status {status} and no answer"
    try:
        return f"killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"killed by signal {-status}"


def _last_words(errors: IO[bytes]) -> str:
    size = errors.seek(0, os.SEEK_END)
    errors.seek(max(0, size - STDERR_BYTES_KEPT))
    return errors.read().decode("utf-8", "replace").strip()


def _kill(process: Process) -> None:
    """Kill the worker with all that it started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            os.kill(process.pid, signal.SIGTERM)
