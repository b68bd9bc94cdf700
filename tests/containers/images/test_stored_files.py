"""The files of an image: what was read before is not asked for again."""

from __future__ import annotations

import base64
import json
import posixpath
import tarfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from docker.errors import NotFound

from gpudoctor.containers.images import stored_files
from gpudoctor.containers.images.stored_files import AnswerStore, StoredFiles, cache_folder, question_of
from tests.containers.archives import archive, chunks, member, saved

ID = "sha256:" + "a" * 64
FILES = {"/app/a.py": b"abc", "/app/b.py": b"b"}
FOLDER = 1 << 31  # source: Go's io/fs.FileMode


class Api:
    """What is asked of an engine about one image: a folder with two files."""

    base_url, api_version, timeout = "http://engine", "1.41", 20

    def __init__(self) -> None:
        self.calls: list[str] = []

    def create_container(self, image: str, **_: object) -> dict[str, str]:
        self.calls.append(f"create {image}")
        return {"Id": "c1"}

    def remove_container(self, container: str, **_: object) -> None:
        self.calls.append(f"remove {container}")

    def head(self, address: str, params: dict[str, str], timeout: int) -> SimpleNamespace:
        self.calls.append(f"stat {params['path']}")
        about = _about(params["path"])
        if about is None:
            return SimpleNamespace(status_code=404)
        encoded = base64.b64encode(json.dumps(about).encode()).decode()
        return SimpleNamespace(status_code=200, ok=True, headers={"X-Docker-Container-Path-Stat": encoded})

    def get_image(self, image: str) -> Iterator[bytes]:
        self.calls.append(f"save {image}")
        layer = archive(member("app/a.py", b"abc"))
        return chunks(saved({"1/layer.tar": layer}, [{"created_by": "COPY a.py /app/"}]))

    def get_archive(self, container: str, path: str) -> tuple[Iterator[bytes], dict[str, Any]]:
        self.calls.append(f"archive {path}")
        about = _about(path)
        if about is None:
            raise NotFound("no such file")
        below = {name: content for name, content in FILES.items() if name.startswith(f"{path}/")}
        members = [member(posixpath.relpath(name, posixpath.dirname(path)), FILES[name]) for name in below or [path]]
        folders = [member(posixpath.basename(path), type=tarfile.DIRTYPE)] if below else []
        return chunks(archive(*folders, *members)), about


def _about(path: str) -> dict[str, Any] | None:
    mode = 0o644 if path in FILES else FOLDER | 0o755
    known = path == "/app" or path in FILES
    about = {"name": posixpath.basename(path), "size": len(FILES.get(path, b"")), "mode": mode}
    return {**about, "mtime": "2026-11-21T10:00:00Z", "linkTarget": ""} if known else None


def files(api: Api, folder: Path) -> StoredFiles:
    return StoredFiles(api, ID, AnswerStore(folder, ID))  # type: ignore[arg-type]  # all that it asks of one


def test_the_container_is_made_for_the_first_question_and_removed_at_the_end(tmp_path: Path) -> None:
    api = Api()
    with files(api, tmp_path) as found:
        assert api.calls == []
        assert found.text("/app/a.py", 100) == "abc"
        assert found.text("/app/b.py", 100) == "b"
    assert api.calls == [f"create {ID}", "archive /app/a.py", "archive /app/b.py", "remove c1"]


def test_it_is_removed_after_an_error_too(tmp_path: Path) -> None:
    api = Api()
    try:
        with files(api, tmp_path) as found:
            found.stat("/app")
            raise KeyboardInterrupt
    except KeyboardInterrupt:
        pass
    assert api.calls[-1] == "remove c1"


def test_every_answer_is_the_same_the_next_time_and_needs_no_container(tmp_path: Path) -> None:
    def ask(found: StoredFiles) -> list[Any]:
        return [
            found.read(["/app"], {"/app/a.py": 3}),
            found.stat("/app/a.py"),
            found.stat("/gone"),
            found.text("/app/a.py", 100),
            found.text("/gone", 100),
            found.names("/app", 1 << 20),
            found.names("/gone", 1 << 20),
        ]

    with files(Api(), tmp_path) as found:
        first = ask(found)
    again = Api()
    with files(again, tmp_path) as found:
        assert ask(found) == first
    assert again.calls == []
    assert {path: file.size_bytes for path, file in first[0].items()} == {"/app": 0, "/app/a.py": 3, "/app/b.py": 1}
    assert first[0]["/app/a.py"].digest
    assert (first[1]["size"], *first[2:]) == (3, None, "abc", None, ("a.py", "b.py"), None)


def test_another_question_is_asked(tmp_path: Path) -> None:
    """The size of the file beside decides whether a digest is read."""
    with files(Api(), tmp_path) as found:
        assert not found.read(["/app"], {"/app/a.py": 4})["/app/a.py"].digest
        assert found.read(["/app"], {"/app/a.py": 3})["/app/a.py"].digest
        assert found.text("/app/a.py", 2) is None
        assert found.text("/app/a.py", 3) == "abc"


def test_other_folders_are_another_question(tmp_path: Path) -> None:
    with files(Api(), tmp_path) as found:
        assert [sorted(found.read([path], {})) for path in FILES] == [[path] for path in FILES]
        assert (found.text("/app/a.py", 100), found.text("/app/a.py", 2)) == ("abc", None)


def test_a_stored_answer_of_another_shape_is_asked_for_again(tmp_path: Path) -> None:
    store = AnswerStore(tmp_path, ID)
    store[question_of("read", ["/app"], {})] = {"/app/a.py": {"colour": "red"}}
    store.save()
    api = Api()
    with files(api, tmp_path) as found:
        assert "/app/b.py" in found.read(["/app"], {})
    assert "archive /app" in api.calls


def test_layers_are_read_once(tmp_path: Path) -> None:
    def ask(found: StoredFiles) -> Any:
        return found.layers({"/app/a.py": 3}, lambda: True)

    first, again = Api(), Api()
    with files(first, tmp_path) as found:
        (layer,) = ask(found)
    with files(again, tmp_path) as found:
        assert ask(found) == (layer,)
        found.layers({"/app/a.py": 4}, lambda: True)
    assert (layer.created_by, layer.files["/app/a.py"].size_bytes) == ("COPY a.py /app/", 3)
    assert (first.calls, again.calls) == ([f"save {ID}"], [f"save {ID}"])


def kept(folder: Path, image_id: str = ID) -> Path:
    store = AnswerStore(folder, image_id)
    store["question"] = {"size": 1}
    store.save()
    return next((folder / "images").iterdir())


def test_an_answer_is_there_the_next_time(tmp_path: Path) -> None:
    kept(tmp_path)
    store = AnswerStore(tmp_path, ID)
    assert "question" in store
    assert store["question"] == {"size": 1}


def test_another_image_has_answers_of_its_own(tmp_path: Path) -> None:
    kept(tmp_path)
    assert "question" not in AnswerStore(tmp_path, "sha256:" + "b" * 64)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b'{"schema": "gpudoctor/image-answers/9", "answers": {"question": 1}}',
        b'{"schema": "gpudoctor/image-answers/1", "image": "sha256:c", "answers": {"question": 1}}',
        b"[" * 100_000,
        b"\xff\xfe",
    ],
)
def test_a_file_that_is_not_understood_is_no_answer(tmp_path: Path, content: bytes) -> None:
    kept(tmp_path).write_bytes(content)
    assert "question" not in AnswerStore(tmp_path, ID)


@pytest.mark.parametrize(
    ("mode", "is_trusted"), [(0o700, True), (0o711, True), (0o755, True), (0o720, False), (0o702, False)]
)
def test_a_folder_is_trusted_by_who_may_write_to_it(mode: int, is_trusted: bool, tmp_path: Path) -> None:
    folder = tmp_path / "store"
    folder.mkdir()
    folder.chmod(mode)
    assert stored_files._is_own(folder) is is_trusted


def test_a_folder_that_others_can_write_to_is_not_trusted(tmp_path: Path) -> None:
    kept(tmp_path).parent.chmod(0o777)
    assert "question" not in AnswerStore(tmp_path, ID)


def test_a_folder_that_cannot_be_made_costs_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    store = AnswerStore(tmp_path / "file", ID)
    store["question"] = 1
    store.save()
    assert "question" not in AnswerStore(tmp_path / "file", ID)


def test_too_many_answers_are_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_files, "MAXIMUM_BYTES", 10)
    store = AnswerStore(tmp_path, ID)
    store["question"] = "x" * 100
    store.save()
    assert not (tmp_path / "images").exists()


def test_the_oldest_images_are_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_files, "MAXIMUM_IMAGES", 2)
    for letter in "abcd":
        kept(tmp_path, f"sha256:{letter * 64}")
    assert len(list((tmp_path / "images").iterdir())) == 2


def test_a_name_of_an_image_leads_nowhere_else(tmp_path: Path) -> None:
    assert kept(tmp_path, "../../etc/passwd").parent == tmp_path / "images"


def test_questions() -> None:
    assert question_of("read", ["a"], {"b": 1, "a": 2}) == question_of("read", ["a"], {"a": 2, "b": 1})
    assert question_of("stat", "\udcff") != question_of("stat", "\udcfe")


def test_the_users_cache() -> None:
    assert cache_folder({"XDG_CACHE_HOME": "/x", "HOME": "/home/user"}) == Path("/x/gpudoctor")
    assert cache_folder({"HOME": "/home/user"}) == Path("/home/user/.cache/gpudoctor")
