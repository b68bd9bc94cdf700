"""How the program ends, by what was raised: the exit status, and at most one line."""

from __future__ import annotations

import errno
import sys
from typing import Any

import click
import pytest

from gpudoctor.commands import cli
from gpudoctor.errors import GpudoctorError, UsageError, WorkloadError


def ending(raised: BaseException, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> Any:
    """Return the exit status of a run in which that is raised."""

    def fails(*_: object, **__: object) -> None:
        raise raised

    monkeypatch.setattr(cli.cli, "main", fails)
    monkeypatch.setattr(cli, "_leave_output", lambda: None)
    monkeypatch.setattr(sys, "argv", ["gpudoctor", *arguments])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return ended.value.code


@pytest.mark.parametrize(
    ("raised", "status", "line"),
    [
        (click.UsageError("no such option"), 2, "gpudoctor: no such option"),
        (
            click.BadParameter("'abc' is not a valid float range."),
            2,
            "gpudoctor: Invalid value: 'abc' is not a number.",
        ),
        (click.BadParameter("'x' is not a valid integer."), 2, "gpudoctor: Invalid value: 'x' is not a number."),
        (click.Abort(), 3, "gpudoctor: interrupted"),
        (KeyboardInterrupt(), 3, "gpudoctor: interrupted"),
        (BrokenPipeError(), 3, ""),
        (UsageError("there is no\nfile"), 2, "gpudoctor: there is no file"),
        (GpudoctorError("no engine"), 3, "gpudoctor: no engine"),
        (OSError(errno.ENOSPC, "disk full"), 3, "gpudoctor: cannot write the output: disk full"),
        (OSError(errno.EDQUOT, "quota"), 3, "gpudoctor: cannot write the output: quota"),
        (OSError(errno.EFBIG, "too large"), 3, "gpudoctor: cannot write the output: too large"),
        (OSError(errno.EIO, "failed"), 3, "gpudoctor: cannot write the output: failed"),
        (
            OSError(errno.ENOSPC, "disk full", "a.json"),
            3,
            "internal error: OSError: [Errno 28] disk full: 'a.json' (--debug shows the traceback)",
        ),
        (
            OSError(errno.EACCES, "denied"),
            3,
            "internal error: PermissionError: [Errno 13] denied (--debug shows the traceback)",
        ),
        (KeyError("x"), 3, "internal error: KeyError: 'x' (--debug shows the traceback)"),
    ],
)
def test_one_line_and_a_status(
    raised: BaseException,
    status: int,
    line: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert ending(raised, monkeypatch) == status
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", f"{line}\n" if line else "")


def test_a_traceback_is_shown_for_a_bug_and_not_for_a_full_disk(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ending(OSError(errno.ENOSPC, "disk full"), monkeypatch, "--debug") == 3
    assert capsys.readouterr().err == "gpudoctor: cannot write the output: disk full\n"
    assert ending(KeyError("x"), monkeypatch, "check", "--debug") == 3
    assert capsys.readouterr().err.startswith("Traceback (most recent call last):\n  File ")


def test_a_traceback_shows_no_secret_and_moves_no_cursor(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    error = ValueError("\x1b[2J\rHF_TOKEN=hf_abcdefghijklmnopqrstuv\u202e /home/alice/x https://u:pw@host")
    error.__cause__ = KeyError("password='swordfish1'\nbell\a")
    assert ending(error, monkeypatch, "--debug") == 3
    shown = capsys.readouterr().err
    assert "ValueError: \\x1b[2J" in shown
    assert [word for word in ("hf_abc", "alice", "pw@", "swordfish") if word in shown] == []
    assert shown.replace("\n", "").isprintable()


def test_the_users_own_traceback_comes_before_the_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    error = WorkloadError("the workload failed: KeyError: 1", 'File "train.py", line 9')
    assert ending(error, monkeypatch) == 2
    assert capsys.readouterr().err == 'File "train.py", line 9\ngpudoctor: the workload failed: KeyError: 1\n'
    assert ending(WorkloadError("the workload failed", ""), monkeypatch) == 2
    assert capsys.readouterr().err == "gpudoctor: the workload failed\n"
