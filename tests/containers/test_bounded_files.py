"""Files of a project that is not trusted."""

import os
from pathlib import Path

import pytest

from gpudoctor.containers.bounded_files import read_bounded


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
    with pytest.raises(ValueError, match="f: no regular file"):
        read_bounded(tmp_path / "f", 5)


def test_a_device(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no regular file"):
        read_bounded(Path(os.devnull), 5)
