"""The program that is watched, and the signals that reach both."""

import os
import subprocess
import sys

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
def test_the_foreground_of_a_terminal_is_told_from_its_background() -> None:
    command = [sys.executable, "-c", f"import os\nif os.fork() == 0:{_indented(IN_BOTH_PLACES)}\nelse: os.wait()"]
    environ = {**os.environ, "PYTHONPATH": os.getcwd()}
    run = subprocess.run(command, env=environ, capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["True", "False"]


def _indented(program: str) -> str:
    return program.replace("\n", "\n    ")
