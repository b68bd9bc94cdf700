"""The program that is watched: its streams are its own, and signals and its exit status pass through."""

import os
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from types import FrameType

from gpudoctor.errors import GpudoctorError

EXIT_NOT_STARTED = 127
"""As a shell says it of a command that is not found."""

_SIGNAL_BASE = 128
_LOOK_UP_SECONDS = 0.5
"""A signal that arrives just before the main thread starts to wait is handled when this wait ends."""

_FROM_TERMINAL = ("SIGINT", "SIGQUIT")
"""Ctrl-C and Ctrl-\\ reach the whole process group of the terminal, and so the program, without us."""

_PASSED_ON = (*_FROM_TERMINAL, "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGBREAK")
"""Ctrl-Z stops us and the program alike, and both continue together: it is left to the terminal."""


class NotStarted(GpudoctorError):
    """The program cannot be started: one line that says why."""

    exit_status = EXIT_NOT_STARTED


class Program:
    """A program in its own process. Signals that come to us are passed on to it from here on.

    command: program and arguments. variables: what is added to the environment.

    Raises:
        NotStarted: there is no such program, or it cannot be run.
    """

    def __init__(self, command: Sequence[str], variables: Mapping[str, str]) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._early: list[int] = []
        self._take_signals()
        try:
            self._process = subprocess.Popen(list(command), env={**os.environ, **variables})
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise NotStarted(f"run: cannot start {command[0]}: {reason}") from None
        self.pid = self._process.pid
        for number in self._early:
            self._process.send_signal(number)

    def wait(self) -> int:
        """Return the exit status when the program has ended; 128 + N where signal N ended it."""
        assert self._process is not None
        end = threading.Thread(target=self._process.wait, daemon=True)
        end.start()
        while end.is_alive():
            end.join(_LOOK_UP_SECONDS)
        status = self._process.wait()
        return status if status >= 0 else _SIGNAL_BASE - status

    def _take_signals(self) -> None:
        """Set the handlers. What is ignored, as under nohup, stays so: the program inherits it."""
        for name in _PASSED_ON:
            number = getattr(signal, name, None)  # Windows has few of them
            if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._pass_on)

    def _pass_on(self, number: int, _frame: FrameType | None) -> None:
        if signal.Signals(number).name in _FROM_TERMINAL and _is_in_foreground():
            return
        if self._process is None:
            self._early.append(number)
        else:
            self._process.send_signal(number)


def _is_in_foreground() -> bool:
    """Return whether our process group is the one that the keys of the terminal reach."""
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY)
    except (OSError, AttributeError):  # no terminal, or no such thing on Windows
        return os.name == "nt"
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)
