"""Archives that ADD unpacks."""

from __future__ import annotations

import hashlib
import tarfile
from pathlib import Path

import pytest

from gpudoctor.containers.builds import added_archives
from gpudoctor.containers.builds.added_archives import NotRead, unpacked
from gpudoctor.containers.builds.context import ContextFile
from tests.containers.archives import archive, member

FILE = ContextFile(path="code.tar", size_bytes=10, changed_at=5.0)


def names(path: Path, data: bytes) -> dict[str, ContextFile]:
    path.write_bytes(data)
    found = unpacked(path, FILE)
    assert found is not None
    return dict(found)


def test_the_files_of_an_archive(tmp_path: Path) -> None:
    data = archive(
        member("./pkg", type=tarfile.DIRTYPE),
        member("./pkg/a.py", b"abc", mode=0o755),
        member("pkg/link", type=tarfile.SYMTYPE, linkname="a.py"),
    )
    found = names(tmp_path / "code.tar", data)
    assert found["pkg/a.py"].digest == hashlib.sha256(b"abc").hexdigest()
    assert (found["pkg/a.py"].path, found["pkg/a.py"].is_executable) == ("code.tar", True)
    assert found["pkg/link"].link_target == "a.py"
    assert found.keys() == {"pkg/a.py", "pkg/link"}


def test_names_that_lead_out_and_devices_are_passed_over(tmp_path: Path) -> None:
    data = archive(
        member("../a", b"x"), member("/b", b"x"), member("c/../../d", b"x"), member("e", type=tarfile.CHRTYPE)
    )
    assert names(tmp_path / "code.tar", data) == {}


@pytest.mark.parametrize("data", [b"text", b"PK\x03\x04" + bytes(600), b""])
def test_what_is_no_archive_is_copied_as_it_is(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "code.tar").write_bytes(data)
    assert unpacked(tmp_path / "code.tar", FILE) is None


def test_a_bomb_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(added_archives, "MAXIMUM_BYTES", 1000)
    (tmp_path / "code.tar").write_bytes(archive(member("a", bytes(600)), member("b", bytes(600))))
    with pytest.raises(NotRead, match="more than"):
        unpacked(tmp_path / "code.tar", FILE)


def test_too_many_members(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(added_archives, "MAXIMUM_MEMBERS", 3)
    (tmp_path / "code.tar").write_bytes(archive(*(member(f"{n}") for n in range(4))))
    with pytest.raises(NotRead, match="more than"):
        unpacked(tmp_path / "code.tar", FILE)
