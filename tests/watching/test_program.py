"""The program that is watched, and the signals that reach both."""

import os

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
