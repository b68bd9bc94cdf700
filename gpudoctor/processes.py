"""Start, feed, limit and end a worker process: for probes, tuning and watching alike.

A worker runs one module of this package in a session of its own. Its environment is passed on untouched. It takes
requests on its standard input and answers on its standard output, a line of JSON each: `worker.py` is its side of it.
"""

import contextlib
import json
import math
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Mapping
from typing import IO, Any

from gpudoctor.errors import GpudoctorError
from gpudoctor.worker import descendants, kill_all

STDERR_LINES = 40
STDERR_LINE_BYTES = 2000
MAXIMUM_ANSWER_BYTES = 64 * 2**20
POLL_SECONDS = 0.1
GRACE_SECONDS = 5.0
"""A process that waits inside the driver ignores SIGKILL: it is left behind after this long."""

FOREIGN = "a worker's answer is not a JSON object: something else wrote to its channel"

BOOT = """
import sys
sys.path[:] = [entry for entry in sys.path if entry]
folder, module = sys.argv[1:]
del sys.argv[1:]
sys.path.insert(0, folder)
import gpudoctor
del sys.path[0]
from importlib import import_module
import_module(module).main()
"""
"""gpudoctor need not be installed for that interpreter, and nothing else of the folder that it is in can be imported.
The working directory is taken off the path: it is the user's, and its json.py is not ours."""
FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class WorkerEnded(Exception):
    """The process ended before it answered.

    status: as in Popen.returncode. stderr_tail: the last lines of its standard error.
    """

    def __init__(self, status: int, stderr_tail: str) -> None:
        self.status, self.stderr_tail = status, stderr_tail
        super().__init__(_death(status))


class WorkerSilent(Exception):
    """No answer came in time."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"no answer in {seconds:g} s, so the process was killed")


class Worker:
    """A worker process.

    module: of this package; its `main()` is what the process runs. interpreter: path of its Python.
    environ, directory: its environment variables and working directory; those of this process if None.
    seconds: from its start to the end of its answers; 0.0 until then.

    Raises:
        OSError: the interpreter cannot be started.
    """

    def __init__(
        self,
        module: str,
        interpreter: str = sys.executable,
        environ: Mapping[str, str] | None = None,
        directory: str | os.PathLike[str] | None = None,
    ) -> None:
        self.started = time.monotonic()
        self.seconds = 0.0
        self._killed = math.inf
        self._process = subprocess.Popen(
            [interpreter, "-c", BOOT, FOLDER, module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environ,
            cwd=directory,
            start_new_session=True,
        )
        self._answers: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._stderr: deque[bytes] = deque(maxlen=STDERR_LINES)
        self._readers = [
            threading.Thread(target=read, args=(stream,), daemon=True)
            for read, stream in ((self._read_answers, self._process.stdout), (self._read_stderr, self._process.stderr))
        ]
        for reader in self._readers:
            reader.start()

    @property
    def pid(self) -> int:
        """Return the number of the process, and of its group."""
        return self._process.pid

    def ask(self, request: Any, timeout_seconds: float) -> dict[str, Any]:
        """Send a request and return the answer to it. Raises as `receive` does."""
        self.send(request)
        return self.receive(timeout_seconds)

    def send(self, request: Any) -> None:
        """Send a request. If the process has ended, `receive` says so."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()

    def receive(self, timeout_seconds: float) -> dict[str, Any]:
        """Return the next answer. An answer that already arrived counts, even after the time limit.

        A line that is not an answer is skipped: a sitecustomize.py or a .pth file may print it when Python starts.

        Raises:
            WorkerEnded: the process ended first.
            WorkerSilent: there was no answer in time. The process is to be ended.
            GpudoctorError: in that time something else was printed.
        """
        deadline, is_foreign = time.monotonic() + timeout_seconds, False
        while True:
            left = deadline - time.monotonic()
            ended = self._process.poll() is not None
            if ended:
                for reader in self._readers:
                    reader.join(POLL_SECONDS)  # what it started and left behind may hold the pipe open
            try:
                line = self._answers.get(block=not ended, timeout=max(0.0, min(left, POLL_SECONDS)))
            except queue.Empty:
                if ended:
                    raise WorkerEnded(self._process.returncode, self.stderr_tail()) from None
                if left <= 0 and is_foreign:
                    raise GpudoctorError(FOREIGN) from None
                if left <= 0:
                    raise WorkerSilent(timeout_seconds) from None
                continue
            if (answer := _parse(line)) is not None:
                return answer
            is_foreign = True

    def stderr_tail(self) -> str:
        """Return the last lines of standard error."""
        return b"".join(self._stderr).decode("utf-8", "replace").strip()

    def kill(self) -> None:
        """Kill the process with everything that it started."""
        started = descendants(self.pid) if self._process.poll() is None else []
        if hasattr(os, "killpg"):
            with contextlib.suppress(OSError):  # all of them have ended
                os.killpg(self.pid, signal.SIGKILL)
        self._process.kill()
        kill_all(started)  # what has left its session
        self._killed = min(self._killed, time.monotonic())

    def end(self) -> bool:
        """Kill the process and wait for it. Return False if it does not end; it is then left behind."""
        self.kill()
        for reader in self._readers:  # they end when it does: to poll for its end takes a few milliseconds more
            reader.join(POLL_SECONDS)
        try:
            self._process.wait(max(0.0, self._killed + GRACE_SECONDS - time.monotonic()))
        except subprocess.TimeoutExpired:
            return False
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):  # a request that nobody read
            self._process.stdin.close()
        return True

    # Each stream is closed by the thread that reads it: to close it for a thread that waits in it would wait too.

    def _read_answers(self, stream: IO[bytes]) -> None:
        with stream:
            while line := stream.readline(MAXIMUM_ANSWER_BYTES):
                if line.endswith(b"\n"):  # not cut off by the end of the process
                    self._answers.put(line)
        self.seconds = time.monotonic() - self.started

    def _read_stderr(self, stream: IO[bytes]) -> None:
        with stream:
            while line := stream.readline(STDERR_LINE_BYTES):
                self._stderr.append(line)


def _parse(line: bytes) -> dict[str, Any] | None:
    """Return the answer; None if it is none."""
    try:
        answer = json.loads(line)
    except ValueError:
        return None
    return answer if isinstance(answer, dict) else None


def _death(status: int) -> str:
    if status >= 0:
        return f"ended with exit status {status}"
    try:
        return f"killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"killed by signal {-status}"
