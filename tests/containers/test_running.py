"""A container beside the project: what lies over its files, and whether it goes on with the source it read at first."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from gpudoctor.containers import running
from gpudoctor.containers.builds.context import ContextFile
from gpudoctor.containers.builds.copied_files import CopiedFile
from gpudoctor.containers.running import keeps_code


@pytest.mark.parametrize(
    "command", ["python train.py", "sleep 1000", "torchrun train.py", "sh -c python train.py", "gunicorn app:app"]
)
def test_a_program_keeps_its_source(command: str) -> None:
    assert keeps_code(command.split())


@pytest.mark.parametrize(
    "command",
    ["uvicorn app:app --reload", "python manage.py runserver", "jupyter lab", "nodemon x", "watchmedo auto-restart x"],
)
def test_a_reloader_does_not(command: str) -> None:
    assert not keeps_code(command.split())


@pytest.mark.parametrize("command", ["sleep infinity", "tail -f /dev/null", "bash", "/bin/bash -l", "sh", "python3"])
def test_what_waits_has_read_none(command: str) -> None:
    assert not keeps_code(command.split())


def file_of(path: str, **fields: Any) -> CopiedFile:
    return CopiedFile(file=ContextFile(path=path, size_bytes=1, **fields), image_path=f"/app/{path}")


PLACED = {f"/app/{path}": file_of(path) for path in ("a.py", "data/b.csv")}


@pytest.mark.parametrize(
    ("about", "hidden"),
    [
        ({"HostConfig": {"Tmpfs": {"/app/data/": ""}}}, [("/app/data", ("data/b.csv",))]),
        ({"Mounts": [{"Type": "tmpfs", "Destination": "/app"}]}, [("/app", ("a.py", "data/b.csv"))]),
        ({"Mounts": [{"Type": "bind", "Destination": "/app"}]}, []),
        ({"HostConfig": {"Tmpfs": {"/srv": ""}}}, []),
        ({"HostConfig": {"Tmpfs": {"/tmp": "", "/var/tmp": "", "/run": ""}}}, []),
        ({"HostConfig": {}, "Mounts": None}, []),
    ],
)
def test_file_systems_in_memory_that_hide_copied_files(about: dict[str, Any], hidden: list[Any]) -> None:
    assert [(found.destination, found.missing) for found in running._covered_by_memory(about, PLACED)] == hidden


@pytest.mark.parametrize("scratch", ["/tmp", "/var/tmp", "/run"])
def test_memory_over_scratch_folders_hides_nothing_that_is_missed(scratch: str) -> None:
    placed = {f"{scratch}/x": file_of("x")}
    assert list(running._covered_by_memory({"HostConfig": {"Tmpfs": {scratch: ""}}}, placed)) == []


def test_mounts_with_files_of_the_host_and_of_volumes() -> None:
    about = {
        "Mounts": [
            {"Type": "bind", "Source": "/home/ann/app", "Destination": "/app/"},
            {"Source": "/x", "Destination": "/y"},
            {"Type": "volume", "Source": "/var/lib/v", "Destination": "/data"},
            {"Type": "tmpfs", "Destination": "/memory"},
        ]
    }
    mounts = list(running._mounts_of(about))
    assert [(mount.destination, mount.is_bind) for mount in mounts] == [("/app", True), ("/y", False), ("/data", False)]
    assert (mounts[0].on_host("/app"), mounts[0].on_host("/app/a/b.py")) == ("/home/ann/app", "/home/ann/app/a/b.py")


def test_a_file_that_was_replaced_on_the_host_is_not_the_one_that_the_process_sees(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "model.py"
    source.write_text("x", encoding="utf-8")
    mount = running._Mount(destination="/app/model.py", source=str(source), is_bind=True)
    monkeypatch.setattr(running, "_is_deleted", lambda pid, destination: True)
    assert running._is_replaced(mount, 2**22 + 1) is True  # nobody can read the files of that process
    monkeypatch.setattr(running, "_is_deleted", lambda pid, destination: False)
    assert running._is_replaced(mount, 2**22 + 1) is False
    folder = running._Mount(destination="/app", source=str(tmp_path), is_bind=True)
    assert running._is_replaced(folder, 2**22 + 1) is None


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_what_is_mounted_here_is_not_deleted() -> None:
    assert running._is_deleted(os.getpid(), "/proc") is False
    assert running._is_deleted(os.getpid(), "/nothing/is/mounted/here") is None
    assert running._is_deleted(0, "/proc") is None


def test_the_newest_code_is_not_that_of_tests_and_builds(tmp_path: Path) -> None:
    names = ["a.py", "pkg/b.py", "notes.txt", "test_a.py", "a_test.py", "conftest.py", "setup.py", "noxfile.py"]
    names += [f"{folder}/c.py" for folder in ("__pycache__", "node_modules", "venv", "site-packages", "tests", "docs")]
    names += ["build/c.py", "dist/c.py", ".git/c.py"]
    for number, name in enumerate(names):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("", encoding="utf-8")
        os.utime(tmp_path / name, (1000 + number, 1000 + number))
    assert {*running._code_in(str(tmp_path), None)} == {str(tmp_path / "a.py"), str(tmp_path / "pkg/b.py")}
    assert running._newest(running._code_in(str(tmp_path), None)) == (1001.0, str(tmp_path / "pkg/b.py"))
    read = frozenset({str(tmp_path / "a.py"), "/elsewhere/x.py"})
    assert running._newest(running._code_in(str(tmp_path), read)) == (1000.0, str(tmp_path / "a.py"))
    assert list(running._code_in("/x/one.py", None)) == ["/x/one.py"]
    assert running._newest(["/does/not/exist.py"]) is None


MOUNTS = """\
36 35 98:0 /old//deleted /app rw - ext4 /dev/sda rw
37 35 98:0 /srv/app /app rw - ext4 /dev/sda rw
38 35 98:0 /srv/my\\040data//deleted /my\\040data rw - ext4 /dev/sda rw
39 35 98:0 /a//deleted /five
40 35 98:0 /cut"""


@pytest.mark.parametrize(
    ("pid", "destination", "is_deleted"),
    [
        pytest.param(9, "/app", False, id="mounted twice: the last one counts"),
        pytest.param(9, "/my data", True, id="an octal escape"),
        pytest.param(9, "/five", True, id="no further fields"),
        pytest.param(9, "/cut", None, id="not mounted"),
    ],
)
def test_what_the_kernel_calls_deleted(
    pid: int, destination: str, is_deleted: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def open_table(path: str, **_: Any) -> io.StringIO:
        assert path == f"/proc/{pid}/mountinfo"
        return io.StringIO(MOUNTS)

    monkeypatch.setattr(running, "open", open_table, raising=False)
    assert running._is_deleted(pid, destination) is is_deleted
