"""The files of a container by the archives of an engine, which is made up here from a tree of files."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import posixpath
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from docker.errors import APIError, NotFound

from gpudoctor.containers.images import reader
from gpudoctor.containers.images.files import ImageFile
from gpudoctor.containers.images.reader import LABEL, NEVER_RUN, ContainerFiles, created_container
from tests.containers.archives import archive, chunks, member

DIRECTORY, LINK, EXECUTABLE = 1 << 31, 1 << 27, 0o755
MTIME = "2026-01-02T03:04:05Z"
TREE = {
    "/app/a.py": b"new", "/app/b.py": b"same", "/app/data/c.bin": bytes(5000), "/app/data/d.txt": b"d", "/etc/e": b"e",
}  # fmt: skip
LINKS = {"/srv": "app", "/app/link.py": "a.py", "/loop": "/loop"}


class Engine:
    """What an engine answers for one container. asked: the paths whose archives were taken."""

    base_url, api_version, timeout = "http://engine", "1.44", 60

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.removed: list[Any] = []

    def create_container(self, image: str, **options: Any) -> dict[str, str]:
        self.options = options
        return {"Id": f"of {image}"}

    def remove_container(self, container: str, **options: Any) -> None:
        self.removed.append((container, options))

    def head(self, address: str, params: Mapping[str, str], timeout: float) -> Any:
        assert address == "http://engine/v1.44/containers/box/archive"
        about = self._about(params["path"])
        if params["path"] == "/forbidden":
            return SimpleNamespace(status_code=500, ok=False, headers={})
        if about is None:
            return SimpleNamespace(status_code=404, ok=False, headers={})
        shown = base64.b64encode(json.dumps(about).encode()).decode()
        return SimpleNamespace(status_code=200, ok=True, headers={"X-Docker-Container-Path-Stat": shown})

    def get_archive(self, container: str, path: str) -> tuple[Iterable[bytes], Mapping[str, Any]]:
        assert container == "box"
        if path == "/forbidden":
            raise APIError("no", explanation="permission denied")
        if path.startswith("/etc/e/"):
            raise APIError("no", explanation="/etc/e: not a directory")
        about = self._about(path)
        if about is None:
            raise NotFound("nothing there")
        self.asked.append(path)
        return chunks(archive(*self._members(path))), about

    def _about(self, path: str) -> dict[str, Any] | None:
        known = {"name": posixpath.basename(path), "size": 0, "mode": 0o644, "mtime": MTIME, "linkTarget": ""}
        if path in LINKS:
            return {**known, "mode": LINK | 0o777, "linkTarget": LINKS[path]}
        if path in TREE:
            return {**known, "size": len(TREE[path]), "mode": EXECUTABLE if path == "/app/b.py" else 0o644}
        if any(file.startswith(f"{path.rstrip('/')}/") for file in TREE):
            return {**known, "mode": DIRECTORY | 0o755}
        return None

    def _members(self, path: str) -> Iterator[Any]:
        parent = posixpath.dirname(path)
        for file, content in TREE.items():
            if file == path or file.startswith(f"{path}/"):
                mode = EXECUTABLE if file == "/app/b.py" else 0o644
                yield member(posixpath.relpath(file, parent), content, mode=mode)


@pytest.fixture
def engine() -> Engine:
    return Engine()


@pytest.fixture
def files(engine: Engine) -> ContainerFiles:
    return ContainerFiles(engine, "box")  # type: ignore[arg-type]


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def test_a_container_that_never_runs_is_removed(engine: Engine) -> None:
    with pytest.raises(OSError, match="x"), created_container(engine, "a:1") as container:  # type: ignore[arg-type]
        raise OSError(f"x {container}")
    assert engine.options["labels"] == {LABEL: str(os.getpid())}
    assert (engine.options["command"], engine.options["entrypoint"]) == (NEVER_RUN, [])
    assert engine.options["network_disabled"] is True
    assert engine.removed == [("of a:1", {"v": True, "force": True})]


def test_a_folder_is_read_whole_and_files_of_the_wanted_size_have_a_digest(
    engine: Engine, files: ContainerFiles
) -> None:
    found = files.read(["/app/"], {"/app/a.py": 3, "/app/b.py": 99})
    assert engine.asked == ["/app"]
    assert set(found) == {path for path in TREE if path.startswith("/app/")}
    assert found["/app/a.py"].digest == digest(b"new")
    assert (found["/app/b.py"].digest, found["/app/b.py"].is_executable) == ("", True)


def test_a_folder_in_a_folder_is_read_once(engine: Engine, files: ContainerFiles) -> None:
    files.read(["/app/data", "/app"], {"/app/a.py": 3, "/app/data/d.txt": 1, "/etc/e": 1})
    assert engine.asked == ["/app", "/etc/e"]


def test_a_folder_behind_a_link(engine: Engine, files: ContainerFiles) -> None:
    found = files.read(["/srv"], {"/srv/a.py": 3})
    assert engine.asked == ["/srv", "/app"]
    assert found["/srv/a.py"].digest == digest(b"new")
    assert "/srv/data/c.bin" in found


def test_single_files(engine: Engine, files: ContainerFiles) -> None:
    found = files.read([], {"/app/a.py": 3, "/app/b.py": 5, "/app/data": 1, "/gone": 1})
    assert engine.asked == ["/app/a.py"]
    assert found["/app/a.py"].digest == digest(b"new")
    assert found["/app/b.py"] == ImageFile(
        kind="file", size_bytes=4, is_executable=True, changed_at=found["/app/b.py"].changed_at
    )
    assert found["/app/b.py"].changed_at == 1767323045.0
    assert found["/app/data"] == ImageFile(kind="folder")
    assert "/gone" not in found


def test_a_folder_with_far_too_much_is_read_file_by_file(
    engine: Engine, files: ContainerFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "SPARE_BYTES", 4000)
    found = files.read(["/app"], {"/app/a.py": 3, "/app/data/d.txt": 1})
    assert engine.asked == ["/app", "/app/a.py", "/app/data/d.txt"]
    assert set(found) == {"/app/a.py", "/app/data/d.txt"}


@pytest.mark.parametrize(("count", "asked"), [(3, False), (4, True)])
def test_of_a_large_folder_those_folders_are_read_whole_in_which_enough_is_looked_for(
    count: int, asked: bool, engine: Engine, files: ContainerFiles
) -> None:
    files.read(["/"], {f"/app/{number}": 1 for number in range(count)})
    assert ("/app" in engine.asked) is asked


@pytest.mark.parametrize(
    ("path", "limit", "text"),
    [
        ("/app/a.py", 3, "new"), ("/app/a.py", 2, None), ("/app/link.py", 3, "new"), ("/app", 9999, None),
        ("/gone", 9, None), ("/loop", 9, None), ("/etc/e/below", 9, None),
    ],
)  # fmt: skip
def test_a_text(path: str, limit: int, text: str | None, files: ContainerFiles) -> None:
    assert files.text(path, limit) == text


@pytest.mark.parametrize(
    ("folder", "limit", "names"),
    [
        ("/app", 1 << 20, {"a.py", "b.py", "data"}),
        ("/srv", 1 << 20, {"a.py", "b.py", "data"}),
        ("/app", 1000, None),
        ("/gone", 1 << 20, None),
        ("/loop", 1 << 20, None),
    ],
)
def test_names(folder: str, limit: int, names: set[str] | None, files: ContainerFiles) -> None:
    found = files.names(folder, limit)
    assert (None if found is None else set(found)) == names


def test_what_the_engine_says_of_a_path(files: ContainerFiles) -> None:
    assert files.stat("/gone") is None
    assert (files.stat("/app/a.py") or {})["size"] == 3
    with pytest.raises(APIError, match="no"):
        files.stat("/forbidden")
    with pytest.raises(APIError, match="no"):
        files.text("/forbidden", 9)


def test_a_file_whatever_its_size(engine: Engine, files: ContainerFiles) -> None:
    whole = files.whole_file("/app/a.py")
    assert whole is not None
    assert whole.digest == digest(b"new")
    assert files.whole_file("/gone") is None


@pytest.mark.parametrize(
    ("members", "text"),
    [
        pytest.param([member("x", b"abc")], "abc", id="a file"),
        pytest.param([], None, id="nothing"),
        pytest.param([member("x", type=tarfile.DIRTYPE)], None, id="a folder"),
        pytest.param([member("x", type=tarfile.SYMTYPE, linkname="y")], None, id="a link"),
        pytest.param(None, None, id="no archive"),
    ],
)
def test_an_archive_that_is_not_what_was_said(members: list[Any] | None, text: str | None) -> None:
    content = b"no archive" if members is None else archive(*members)
    api: Any = SimpleNamespace(get_archive=lambda container, path: ([content], {"mode": 0o644, "size": 3}))
    assert ContainerFiles(api, "1").text("/x", 100) == text
