"""The files of an image, by what was read of it before, and else by a container that is never started.

An image never changes, because its id is the digest of its content: what was read is kept for the next time.
"""

import hashlib
import json
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, suppress
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from gpudoctor.containers.engines import APIClient
from gpudoctor.containers.images.files import ImageFile, Layer, read_layers
from gpudoctor.containers.images.reader import ContainerFiles, created_container
from gpudoctor.files import created_without
from gpudoctor.model.codec import from_json, to_json

SCHEMA = "gpudoctor/image-answers/1"
MAXIMUM_BYTES = 8 << 20
"""Of the answers about one image; more are not kept."""

MAXIMUM_IMAGES = 50

T = TypeVar("T")


def cache_folder(environ: Mapping[str, str]) -> Path:
    """Return the cache folder of the user. Source: XDG Base Directory Specification."""
    return Path(environ.get("XDG_CACHE_HOME") or Path(environ.get("HOME") or "/nonexistent", ".cache"), "gpudoctor")


class AnswerStore:
    """The answers about one image, by question. Only a folder that nobody else can write to is used."""

    def __init__(self, folder: Path, image_id: str) -> None:
        self._folder = folder / "images"
        self._path = self._folder / f"{re.sub('[^a-z0-9]', '-', image_id)[-64:]}.json"
        self._image_id = image_id
        self._answers: dict[str, Any] = self._load()
        self._is_changed = False

    def __contains__(self, question: str) -> bool:
        return question in self._answers

    def __getitem__(self, question: str) -> Any:
        return self._answers[question]

    def __setitem__(self, question: str, answer: Any) -> None:
        self._answers[question] = answer
        self._is_changed = True

    def save(self) -> None:
        """Write all new answers, or none of them."""
        content = {"schema": SCHEMA, "image": self._image_id, "answers": self._answers}
        text = json.dumps(content) if self._is_changed else ""
        if not text or len(text) > MAXIMUM_BYTES:
            return
        with suppress(OSError):
            with created_without(0o077):
                self._folder.mkdir(parents=True, exist_ok=True)
            if not _is_own(self._folder):
                return
            descriptor, temporary = tempfile.mkstemp(dir=self._folder, suffix=".new")
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(text)
            os.replace(temporary, self._path)
            self._remove_oldest()

    def _load(self) -> dict[str, Any]:
        try:
            if not _is_own(self._folder) or self._path.stat().st_size > MAXIMUM_BYTES:
                return {}
            content = json.loads(self._path.read_bytes())
        except (OSError, ValueError, RecursionError):
            return {}
        known = isinstance(content, dict) and (content.get("schema"), content.get("image")) == (SCHEMA, self._image_id)
        answers = content.get("answers") if known else None
        return answers if isinstance(answers, dict) else {}

    def _remove_oldest(self) -> None:
        files = sorted(self._folder.iterdir(), key=lambda path: path.stat().st_mtime, reverse=True)
        for path in files[MAXIMUM_IMAGES:]:
            path.unlink()


def question_of(*parts: Any) -> str:
    """Return a key for any parts that JSON can write."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode("utf-8", "surrogatepass")).hexdigest()


def _is_own(folder: Path) -> bool:
    if not hasattr(os, "geteuid"):
        return False
    about = folder.lstat()
    return about.st_uid == os.geteuid() and not about.st_mode & 0o022


class StoredFiles:
    """The `Files` of one image. The container is made when the first question is asked that has no answer yet."""

    def __init__(self, api: APIClient, image_id: str, store: AnswerStore) -> None:
        self._api = api
        self._image_id = image_id
        self._store = store
        self._stack = ExitStack()

    def __enter__(self) -> "StoredFiles":
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()
        self._store.save()

    def read(self, folders: Iterable[str], sizes: Mapping[str, int]) -> dict[str, ImageFile]:
        wanted = sorted(folders)
        return self._answer(dict[str, ImageFile], lambda: self._files.read(wanted, sizes), "read", wanted, sizes)

    def stat(self, path: str) -> Mapping[str, Any] | None:
        return self._answer(dict[str, Any] | None, lambda: self._files.stat(path), "stat", path)

    def text(self, path: str, limit_bytes: int) -> str | None:
        return self._answer(str | None, lambda: self._files.text(path, limit_bytes), "text", path, limit_bytes)

    def names(self, folder: str, limit_bytes: int) -> tuple[str, ...] | None:
        kind = tuple[str, ...] | None
        return self._answer(kind, lambda: self._files.names(folder, limit_bytes), "names", folder, limit_bytes)

    def layers(self, sizes: Mapping[str, int], in_time: Callable[[], bool]) -> tuple[Layer, ...]:
        """Return the layers of the image, with the files at the paths of `sizes`; see `read_layers`.

        Raises:
            Unreadable: they are not understood, or reading takes too long.
        """

        def ask() -> tuple[Layer, ...]:
            return read_layers(self._api.get_image(self._image_id), sizes, in_time)

        return self._answer(tuple[Layer, ...], ask, "layers", sizes)

    def _answer(self, kind: Any, ask: Callable[[], T], *asked: Any) -> T:
        """Return the stored answer, which is of type `kind`, else the one that `ask` gives, and store that."""
        question = question_of(*asked)
        try:
            answer: T = from_json(kind, self._store[question], "stored answer")
        except (KeyError, ValueError):
            answer = ask()
            self._store[question] = to_json(answer)
        return answer

    @cached_property
    def _files(self) -> ContainerFiles:
        return ContainerFiles(self._api, self._stack.enter_context(created_container(self._api, self._image_id)))
