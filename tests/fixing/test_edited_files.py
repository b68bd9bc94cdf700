"""What a fix changed in a project's files comes back with `--undo`, unless somebody changed it since."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from gpudoctor.fixing import edited_files
from gpudoctor.fixing.plan import Plan
from gpudoctor.fixing.programs import Refused
from gpudoctor.fixing.project_files import FileEdit
from gpudoctor.fixing.requests import state_file
from gpudoctor.fixing.run import Fixer
from gpudoctor.model import Report, Snapshot

NOTHING_FOUND = Report(version="1", snapshot=Snapshot(), results=(), findings=())


@pytest.fixture
def edits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[FileEdit, ...]:
    """Return what is to be changed in two files."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    for name in ("requirements.txt", "compose.yaml"):
        (tmp_path / name).write_text("old\n")
    return tuple(
        FileEdit(path=Path(name), before="old\n", after="new\n") for name in ("requirements.txt", "compose.yaml")
    )


def fixer() -> Fixer:
    return Fixer(interpreter=sys.executable, environ=os.environ, ask=lambda: NOTHING_FOUND, say=print)


def texts() -> list[str]:
    return [Path(name).read_text() for name in ("requirements.txt", "compose.yaml")]


def test_a_fix_of_files_alone_is_undone(edits: tuple[FileEdit, ...], tmp_path: Path) -> None:
    done = fixer().edit(Plan(steps=(), edits=edits), NOTHING_FOUND)
    assert (done.status, done.record, texts()) == (
        "fixed",
        str(tmp_path / "state" / "gpudoctor" / "fix"),
        ["new\n"] * 2,
    )
    undone = fixer().undo()
    assert (undone.sentence, undone.left) == ("requirements.txt and compose.yaml are as before the fix", ())
    assert texts() == ["old\n"] * 2
    with pytest.raises(Refused, match="there is nothing to undo"):
        fixer().undo()


def test_a_file_that_was_changed_since_is_named_and_left_alone(edits: tuple[FileEdit, ...]) -> None:
    fixer().edit(Plan(steps=(), edits=edits), NOTHING_FOUND)
    edits[0].path.write_text("new\nmine\n")
    undone = fixer().undo()
    assert undone.sentence == (
        "compose.yaml is as before the fix. requirements.txt was changed after the fix, and left alone"
    )
    assert [edit.path.name for edit in undone.left] == ["requirements.txt"]
    assert texts() == ["new\nmine\n", "old\n"]


def test_a_file_that_was_not_written_or_changed_back_is_restored(edits: tuple[FileEdit, ...]) -> None:
    edited_files.keep(sys.executable, edits, "")
    edits[0].write()  # and killed before the second
    assert fixer().undo().left == ()
    assert texts() == ["old\n"] * 2


def test_a_file_that_is_gone_is_named(edits: tuple[FileEdit, ...]) -> None:
    fixer().edit(Plan(steps=(), edits=edits), NOTHING_FOUND)
    edits[1].path.unlink()
    assert [edit.path.name for edit in fixer().undo().left] == ["compose.yaml"]


def test_it_belongs_to_one_record(edits: tuple[FileEdit, ...]) -> None:
    edited_files.keep(sys.executable, edits, "this")
    assert edited_files.kept(sys.executable, "another") == ()
    assert edited_files.kept("/another/python", "this") == ()
    assert [edit.after for edit in edited_files.kept(sys.executable, "this")] == ["new\n"] * 2


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"schema": "gpudoctor/fix-edits/1", "of": "", "edits": [1]}'])
def test_what_is_damaged_is_nothing(edits: tuple[FileEdit, ...], content: str) -> None:
    edited_files.keep(sys.executable, edits, "")
    path = state_file(sys.executable, edited_files.KIND)
    assert os.name != "posix" or path.stat().st_mode & 0o077 == 0  # a compose file may have secrets
    path.write_text(content)
    assert edited_files.kept(sys.executable, "") == ()
