"""The files of an image, by what was read of it before, and else by a container that is never started."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from gpudoctor.containers.images.answer_store import AnswerStore, question_of
from gpudoctor.containers.images.files import ImageFile
from gpudoctor.containers.images.layers import Layer, read_layers
from gpudoctor.containers.images.reader import ContainerFiles, created_container
from gpudoctor.model.codec import from_json, to_json

if TYPE_CHECKING:
    from docker import APIClient

T = TypeVar("T")


class StoredFiles:
    """The files of one image. The container is made when the first question is asked that has no answer yet."""

    def __init__(self, api: APIClient, image_id: str, store: AnswerStore) -> None:
        self._api = api
        self._image_id = image_id
        self._store = store
        self._stack = ExitStack()

    def __enter__(self) -> StoredFiles:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()
        self._store.save()

    def read(self, folders: Iterable[str], sizes: Mapping[str, int]) -> dict[str, ImageFile]:
        """Return the files below `folders` and at the paths of `sizes`, by absolute path."""
        wanted = sorted(folders)
        return self._answer(
            dict[str, ImageFile], lambda: self._files.read(wanted, sizes), question_of("read", wanted, sizes)
        )

    def stat(self, path: str) -> Mapping[str, Any] | None:
        """Return what the engine says of `path`; None where nothing stands there."""
        return self._answer(dict[str, Any] | None, lambda: self._files.stat(path), question_of("stat", path))

    def text(self, path: str, limit_bytes: int) -> str | None:
        """Return the content of a file; None where there is none of at most `limit_bytes`."""
        question = question_of("text", path, limit_bytes)
        return self._answer(str | None, lambda: self._files.text(path, limit_bytes), question)

    def names(self, folder: str, limit_bytes: int) -> tuple[str, ...] | None:
        """Return the names in `folder`; None where there is none, or too much in it to know them all."""
        question = question_of("names", folder, limit_bytes)
        return self._answer(tuple[str, ...] | None, lambda: self._files.names(folder, limit_bytes), question)

    def layers(self, sizes: Mapping[str, int], in_time: Callable[[], bool]) -> tuple[Layer, ...]:
        """Return the layers of the image, with the files at the paths of `sizes`; see `read_layers`.

        Raises:
            Unreadable: they are not understood, or reading takes too long.
        """
        return self._answer(
            tuple[Layer, ...],
            lambda: read_layers(self._api.get_image(self._image_id), sizes, in_time),
            question_of("layers", sizes),
        )

    def _answer(self, kind: Any, ask: Callable[[], T], question: str) -> T:
        """Return the stored answer, which is of type `kind`, else the one that `ask` gives, and store that."""
        try:
            answer: T = from_json(kind, self._store[question], "stored answer")
        except (KeyError, ValueError):
            answer = ask()
            self._store[question] = to_json(answer)
        return answer

    @cached_property
    def _files(self) -> ContainerFiles:
        return ContainerFiles(self._api, self._stack.enter_context(created_container(self._api, self._image_id)))
