"""What a rebuild does, step by step: each can run, or only be shown."""

import contextlib
import os
import shlex
import signal
import subprocess
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field
from typing import Protocol

from gpudoctor.containers.rebuild.interrupts import Interrupts
from gpudoctor.model.record import record

LAST_LINES = 20
"""Of the build's output, which are shown if it fails."""

_LONGEST_LINE = 400
_END_SECONDS = 10.0  # for a command to end in order after the signal


class BuildFailed(Exception):
    """A build failed. lines: the last lines of its output."""

    def __init__(self, message: str, lines: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.lines = lines


class Progress:
    """How far it is, for the user, and for how long to wait. Of a build's output the last line is shown, some are kept.

    show: shows one line in the place of the one before. say: writes a line that stays.
    timeout_seconds: for one step. interrupts: where a step may be interrupted.
    kept_open: descriptors that commands inherit. heard: is given each line of the output.
    """

    def __init__(
        self,
        show: Callable[[str], None],
        say: Callable[[str], None],
        timeout_seconds: float,
        interrupts: Interrupts | None = None,
        kept_open: tuple[int, ...] = (),
        heard: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._show, self._heard = show, heard
        self.say = say
        self.timeout_seconds = timeout_seconds
        self.interrupts = interrupts or Interrupts()
        self.kept_open = kept_open
        self._lines: deque[str] = deque(maxlen=LAST_LINES)

    def add(self, text: str) -> None:
        """Add text of any number of lines."""
        for line in text.replace("\r", "\n").split("\n"):
            if line.strip():
                self._lines.append(line.rstrip()[:_LONGEST_LINE])
                self._heard(self._lines[-1])
                self._show(self._lines[-1])

    @property
    def last_lines(self) -> tuple[str, ...]:
        """Return the last lines, the oldest first."""
        return tuple(self._lines)


class Step(Protocol):
    """One step. Its text is a command line for the user."""

    def run(self, progress: Progress) -> None:
        """Run the step. Raises BuildFailed: it failed, or took too long."""


@record
class Command:
    """A command line. environment: variables that it sets. text: its standard input."""

    arguments: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    text: str = ""

    def __str__(self) -> str:
        """Return the line for a shell, quoted."""
        settings = [f"{name}={shlex.quote(value)}" for name, value in self.environment.items()]
        line = " ".join([*settings, shlex.join(self.arguments)])
        return f"printf %s {shlex.quote(self.text)} | {line}" if self.text else line

    def run(self, progress: Progress) -> None:
        """Run the command; it is ended in order when this program is interrupted.

        Raises:
            BuildFailed: its exit status is not 0, or it took too long.
        """
        late = threading.Event()
        with _started(self, progress) as process:

            def end_late() -> None:
                late.set()
                _end(process)

            timer = threading.Timer(progress.timeout_seconds, end_late)
            timer.start()
            try:
                assert process.stdout is not None, "a pipe"
                while line := process.stdout.readline(_LONGEST_LINE):
                    progress.add(line.decode(errors="replace"))
                status = process.wait()
            finally:
                timer.cancel()
        if late.is_set():
            text = f"the build took longer than {progress.timeout_seconds:g} seconds: to wait longer, raise --timeout"
            raise BuildFailed(text, progress.last_lines)
        if status != 0:
            raise BuildFailed(f"the build failed (exit status {status})", progress.last_lines)


@contextmanager
def _started(command: Command, progress: Progress) -> Iterator[subprocess.Popen[bytes]]:
    """Give the running command, in a session of its own: Ctrl-C reaches it only after this program has taken note."""
    process: subprocess.Popen[bytes] | None = None
    try:
        with progress.interrupts.allowed(False):  # or nobody would know the process
            process = _start(command, progress)
        if process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write(command.text.encode())
                process.stdin.close()
        yield process
    finally:
        if process is not None:
            _end(process)
            if process.stdout is not None:
                process.stdout.close()


def _start(command: Command, progress: Progress) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            command.arguments,
            stdin=subprocess.PIPE if command.text else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, **command.environment},
            start_new_session=True,
            pass_fds=progress.kept_open,
        )
    except OSError as error:
        raise BuildFailed(f"{command.arguments[0]} cannot be run: {error.strerror}") from None


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the command in order, which lets docker take back what it began; by force if it does not listen."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_END_SECONDS)
