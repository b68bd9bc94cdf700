"""A file is written whole or not at all."""

import os
import stat
from pathlib import Path

import pytest

from gpudoctor.errors import UsageError
from gpudoctor.files import check_writable, new_folder, read_bounded, write_whole


def test_the_file_holds_the_text_and_nothing_lies_next_to_it(tmp_path: Path) -> None:
    write_whole(tmp_path / "report.json", "{}\n")
    assert (tmp_path / "report.json").read_text() == "{}\n"
    assert [path.name for path in tmp_path.iterdir()] == ["report.json"]


def test_it_can_be_read_like_any_new_file(tmp_path: Path) -> None:
    (tmp_path / "plain").touch()
    write_whole(tmp_path / "report", "")
    assert (tmp_path / "report").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot write .*/nowhere/report: No such file or directory"):
        write_whole(tmp_path / "nowhere" / "report", "")


def test_a_failure_leaves_the_old_file_and_no_other(tmp_path: Path) -> None:
    (tmp_path / "report").mkdir()
    with pytest.raises(UsageError, match="cannot write"):
        write_whole(tmp_path / "report", "new")
    assert [path.name for path in tmp_path.iterdir()] == ["report"]


def test_a_folder_appears_when_it_is_filled(tmp_path: Path) -> None:
    (tmp_path / "machine").mkdir()
    with new_folder(tmp_path / "machine") as temporary:
        (temporary / "facts").write_text("x")
        assert list((tmp_path / "machine").iterdir()) == []
    assert (tmp_path / "machine" / "facts").read_text() == "x"
    assert [path.name for path in tmp_path.iterdir()] == ["machine"]


def test_a_folder_that_cannot_be_filled_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), new_folder(tmp_path / "machine") as temporary:
        (temporary / "nowhere" / "facts").write_text("x")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_stays_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_whole(pipe, "text")
    assert os.read(reader, 100) == b"text"
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    os.close(reader)


def test_a_link_stays_a_link_and_the_file_keeps_its_permissions(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    target = tmp_path / "there" / "report"
    target.write_text("old")
    target.chmod(0o640)
    (tmp_path / "link").symlink_to(target)
    write_whole(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (target.read_text(), stat.S_IMODE(target.stat().st_mode)) == ("new", 0o640)
    assert [path.name for path in (tmp_path / "there").iterdir()] == ["report"]


def test_a_link_to_nothing_makes_what_it_names(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "new")
    write_whole(tmp_path / "link", "text")
    assert (tmp_path / "new").read_text() == "text"


def test_an_interruption_leaves_nothing_next_to_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "report").write_text("old")

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_whole(tmp_path / "report", "new")
    assert [path.name for path in tmp_path.iterdir()] == ["report"]


def test_a_place_that_can_be_written_is_known_before_and_left_as_it_was(tmp_path: Path) -> None:
    check_writable(tmp_path / "new")
    (tmp_path / "old").write_text("text")
    check_writable(tmp_path / "old")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("old", "text")]


@pytest.mark.parametrize(
    ("path", "reason"),
    [(".", "Is a directory"), ("nowhere/file", "No such file or directory"), ("file/below", "Not a directory")],
)
def test_a_place_that_cannot_be_written_is_known_before(path: str, reason: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match=rf"^cannot write .*: {reason}$"):
        check_writable(tmp_path / path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_without_a_reader_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    check_writable(tmp_path / "pipe")


def test_content(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"12345")
    assert read_bounded(tmp_path / "f", 5) == b"12345"


def test_a_larger_file(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"123456")
    with pytest.raises(ValueError, match="f: larger than 5 bytes"):
        read_bounded(tmp_path / "f", 5)


def test_a_system_without_flags_of_pipes_and_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """O_NONBLOCK exists on POSIX, O_BINARY on Windows."""
    (tmp_path / "f").write_bytes(b"12345")
    monkeypatch.delattr(os, "O_NONBLOCK", raising=False)
    monkeypatch.delattr(os, "O_BINARY", raising=False)
    assert read_bounded(tmp_path / "f", 5) == b"12345"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes need POSIX")
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "f")
    with pytest.raises(ValueError, match="f: not a regular file"):
        read_bounded(tmp_path / "f", 5)


def test_a_device(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not a regular file"):
        read_bounded(Path(os.devnull), 5)
