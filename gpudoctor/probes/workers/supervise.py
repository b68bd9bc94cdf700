"""Run workers side by side, each in a process of its own with a time limit, and write down how each one ended.

The order comes on standard input as one line of JSON: `timeout_seconds`, and `questions` with `name`, `worker`,
`arguments` and `interpreter` (null for a copy of this process). For each question, in order, two lines go to standard
output: how it ended (`name`, `state`, `status`, `seconds`, `errors`), and the worker's answer as it wrote it.

A small process forks in a moment; the program that asks, with all its modules, would not. When standard input ends,
because the asker is gone, every worker is killed. Standard library only, from Python 3.8 on.
"""

from __future__ import annotations

import faulthandler
import gc
import importlib
import json
import os
import subprocess
import sys
import threading
import time

TYPE_CHECKING = False
if TYPE_CHECKING:  # the module typing takes as long to import as all of this one's
    from typing import IO, Any, Callable, Dict, List, Mapping, NoReturn, Sequence

run = importlib.import_module("run")
importlib.import_module("read_host")  # in the time before the order comes, for most questions are its

FOLDER = os.path.dirname(os.path.abspath(__file__))
MAXIMUM_ANSWER_BYTES = 64 * 2**20
STDERR_BYTES_KEPT = 4000
GRACE_SECONDS = 2.0  # a process that waits inside the driver ignores SIGKILL: it is left behind after this long


class Running:
    """A worker at work: its process, the pipe of its answer and the file of its standard error."""

    def __init__(self, name: str, pid: int, wait: Callable[[], int], output: IO[bytes], errors: IO[bytes]) -> None:
        self.name = name
        self.pid = pid
        self.wait = wait
        self.output = output
        self.errors = errors
        self.started = time.monotonic()
        self.answer = b""
        self.status: Any = None
        self.seconds = 0.0
        self.listener = threading.Thread(target=self.listen, daemon=True)

    def listen(self) -> None:
        """Read the answer, one line, then wait for the end. A process that the worker left behind is not waited for."""
        self.answer = self.output.readline(MAXIMUM_ANSWER_BYTES)
        self.status = self.wait()
        self.seconds = time.monotonic() - self.started

    def finish(self, timeout_seconds: float) -> Dict[str, Any]:
        """Wait for the worker, kill it at its limit, and return how it ended."""
        self.listener.join(max(0.0, self.started + timeout_seconds - time.monotonic()))
        state = "ended"
        if self.listener.is_alive():
            state = "timed-out"
            self.kill()
            self.listener.join(GRACE_SECONDS)
            self.seconds = timeout_seconds
        ending = {"name": self.name, "state": state, "status": self.status, "seconds": self.seconds}
        return {**ending, "errors": _last_words(self.errors)}

    def kill(self) -> None:
        """Kill the worker with all that it started."""
        try:
            if hasattr(os, "killpg"):
                os.killpg(self.pid, 9)
            else:
                os.kill(self.pid, 15)
        except OSError:  # it has ended
            pass


def start(question: Mapping[str, Any]) -> Running:
    """Start the worker of one question.

    Raises:
        OSError: its interpreter cannot be started.
    """
    if question["interpreter"] or not hasattr(os, "fork"):
        return _spawn(question)
    return _fork(question)


def _spawn(question: Mapping[str, Any]) -> Running:
    errors = _scratch_file()
    worker = os.path.join(FOLDER, question["worker"] + ".py")
    process = subprocess.Popen(
        [question["interpreter"] or sys.executable, "-X", "faulthandler", os.path.join(FOLDER, "run.py"), worker],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        start_new_session=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(json.dumps(question["arguments"]).encode())
        process.stdin.close()
    except BrokenPipeError:  # it is no Python, or has ended already
        pass
    return Running(question["name"], process.pid, process.wait, process.stdout, errors)


def _fork(question: Mapping[str, Any]) -> Running:
    reader, writer = os.pipe()
    errors = _scratch_file()
    pid = os.fork()
    if pid == 0:
        _work(question, writer, errors.fileno())
    os.close(writer)
    return Running(question["name"], pid, lambda: _exit_status(pid), os.fdopen(reader, "rb"), errors)


def _work(question: Mapping[str, Any], output: int, errors: int) -> NoReturn:
    """In the copy: deliver the answer and leave the process."""
    try:
        os.setsid()
        for source, target in ((os.open(os.devnull, os.O_RDONLY), 0), (output, 1), (errors, 2)):
            os.dup2(source, target)
        worker = importlib.import_module(question["worker"])
        sys.path.remove(FOLDER)  # a library must not find the workers under its modules' names
        faulthandler.enable()
        run.deliver(worker.collect, question["arguments"])
    except BaseException as error:
        os.write(2, (type(error).__name__ + ": " + str(error) + "\n").encode())
    finally:
        os._exit(70)


def _exit_status(pid: int) -> int:
    """Wait for a copy of this process; return its exit status, negative for a signal."""
    status = os.waitpid(pid, 0)[1]
    return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def _scratch_file() -> IO[bytes]:
    """Return an unnamed file for a worker's standard error."""
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("errors"), "w+b")
    import tempfile

    return tempfile.TemporaryFile()


def _last_words(errors: IO[bytes]) -> str:
    size = errors.seek(0, os.SEEK_END)
    errors.seek(max(0, size - STDERR_BYTES_KEPT))
    return errors.read().decode("utf-8", "replace").strip()


def _leave_with(workers: Sequence[Running]) -> NoReturn:
    """Wait until the asker is gone, then leave nothing at work."""
    sys.stdin.buffer.read()
    for worker in workers:
        if worker.listener.is_alive():  # the number of one that has ended may be another process's by now
            worker.kill()
    os._exit(1)


def main() -> None:
    """Take the order, run the workers, write how they ended. `sys.path` starts with this folder."""
    gc.disable()  # the process lives for a moment, and a collection would copy the memory that the copies share
    order = json.loads(sys.stdin.buffer.readline())
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    workers: List[Running] = []
    failed: List[Dict[str, Any]] = []
    for question in order["questions"]:
        try:
            workers.append(start(question))
        except OSError as error:
            failed.append({"name": question["name"], "state": "not-started", "seconds": 0.0, "errors": str(error)})
    threading.Thread(target=_leave_with, args=(workers,), daemon=True).start()
    for worker in workers:
        worker.listener.start()
    for worker in workers:
        ending = worker.finish(order["timeout_seconds"])
        output.write(json.dumps(ending).encode() + b"\n" + worker.answer.rstrip(b"\n") + b"\n")
        output.flush()  # what is known stays known if this process is killed
    for ending in failed:
        output.write(json.dumps(ending).encode() + b"\n\n")
    output.flush()
    os._exit(0)
