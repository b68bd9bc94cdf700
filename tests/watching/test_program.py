"""The program that is watched, and the signals that reach both."""

import os
import signal
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from gpudoctor.watching import program


def test_without_a_terminal_nobody_is_in_its_foreground(monkeypatch: pytest.MonkeyPatch) -> None:
    """A signal is then for gpudoctor alone, and is passed on; on Windows the console reaches every program."""

    def no_terminal(path: str, flags: int) -> int:
        raise OSError(path)

    monkeypatch.setattr(os, "open", no_terminal)
    assert program._is_in_foreground() == (os.name == "nt")


def test_a_system_without_terminals_of_posix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "O_NOCTTY", raising=False)
    assert program._is_in_foreground() == (os.name == "nt")


IN_BOTH_PLACES = """
import fcntl, os, termios
from gpudoctor.watching.program import _is_in_foreground

os.setsid()
keys, terminal = os.openpty()
fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
print(_is_in_foreground(), flush=True)
if os.fork() == 0:
    os.setpgid(0, 0)
    print(_is_in_foreground(), flush=True)
    os._exit(0)
os.wait()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="makes a terminal of its own")
def test_the_foreground_of_a_terminal_is_distinguished_from_its_background() -> None:
    command = [sys.executable, "-c", f"import os\nif os.fork() == 0:{_indented(IN_BOTH_PLACES)}\nelse: os.wait()"]
    environ = {**os.environ, "PYTHONPATH": os.getcwd()}
    run = subprocess.run(command, env=environ, capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["True", "False"]


def _indented(program: str) -> str:
    return program.replace("\n", "\n    ")


@pytest.mark.parametrize("in_foreground", [True, False])
@pytest.mark.parametrize(
    ("name", "from_terminal"),
    [
        ("SIGINT", True),
        ("SIGQUIT", True),
        ("SIGTERM", False),
        ("SIGHUP", False),
        ("SIGUSR1", False),
        ("SIGUSR2", False),
    ],
)
def test_a_signal_is_passed_on_unless_the_terminal_has_sent_it_to_the_program_too(
    name: str, from_terminal: bool, in_foreground: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = getattr(signal, name)
    taken: dict[int, Any] = {}
    monkeypatch.setattr(signal, "signal", taken.__setitem__)
    monkeypatch.setattr(signal, "getsignal", lambda number: signal.SIG_DFL)
    monkeypatch.setattr(program, "_is_in_foreground", lambda: in_foreground)
    started = SimpleNamespace(pid=7, sent=[])
    started.send_signal = started.sent.append

    def start(command: list[str], env: Any) -> Any:
        taken[number](number, None)  # while it is being started
        return started

    monkeypatch.setattr(subprocess, "Popen", start)
    watched = program.Program(["train"], {})
    is_passed_on = not (from_terminal and in_foreground)
    assert started.sent == [number] * is_passed_on
    watched._pass_on(number, None)
    assert started.sent == [number, number] * is_passed_on


def test_signals_that_are_ignored_stay_so(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: dict[int, Any] = {}
    ignored = {signal.SIGHUP}
    monkeypatch.setattr(signal, "signal", taken.__setitem__)
    monkeypatch.setattr(signal, "getsignal", lambda number: signal.SIG_IGN if number in ignored else signal.SIG_DFL)
    program.Program([sys.executable, "-c", ""], {}).wait()
    assert set(taken) == {signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2}


@pytest.mark.parametrize(("status", "told"), [(0, 0), (3, 3), (-9, 137), (-15, 143)])
def test_the_exit_status(status: int, told: int) -> None:
    watched = program.Program.__new__(program.Program)
    watched._process = SimpleNamespace(wait=lambda: status)  # type: ignore[assignment]
    assert watched.wait() == told


UNHEARD = """
import os, signal, sys, threading, time
from gpudoctor.watching.program import Program

program = Program([sys.executable, "-c", "import time; time.sleep(300)"], {})

def send():
    time.sleep(0.5)
    os.kill(os.getpid(), signal.SIGTERM)

threading.Thread(target=send).start()
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
print(program.wait())
"""


@pytest.mark.skipif(os.name == "nt", reason="Windows has no signal masks")
def test_a_signal_that_does_not_interrupt_the_wait_is_passed_on() -> None:
    """It is delivered to another thread here; one that comes just before the wait begins does not interrupt it either.

    The program sleeps for 300 seconds: only the signal can end it sooner.
    """
    environ = {**os.environ, "PYTHONPATH": os.getcwd()}
    command = [sys.executable, "-c", UNHEARD]
    run = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=120, check=True)
    assert run.stdout.split() == [str(128 + signal.SIGTERM)]
