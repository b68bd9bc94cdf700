"""What was read of an image, kept for the next look."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpudoctor.containers.images import answer_store
from gpudoctor.containers.images.answer_store import AnswerStore, cache_folder, question_of

ID = "sha256:" + "a" * 64


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
    monkeypatch.setattr(answer_store, "MAXIMUM_BYTES", 10)
    store = AnswerStore(tmp_path, ID)
    store["question"] = "x" * 100
    store.save()
    assert not (tmp_path / "images").exists()


def test_the_oldest_images_are_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer_store, "MAXIMUM_IMAGES", 2)
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
