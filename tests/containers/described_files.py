"""Files of an image that are only described, for what asks for some of them."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping
from typing import Any

from gpudoctor.containers.images.files import ImageFile


class Described:
    """Files of an image by their paths. links: path → target. large: folders with too much in them to be listed."""

    def __init__(
        self, files: Mapping[str, str], links: Mapping[str, str] | None = None, large: tuple[str, ...] = ()
    ) -> None:
        self._files = dict(files)
        self._links = dict(links or {})
        self._large = large

    def read(self, folders: Iterable[str], sizes: Mapping[str, int]) -> dict[str, ImageFile]:
        raise AssertionError

    def stat(self, path: str) -> Mapping[str, Any] | None:
        if path in self._links:
            return {"linkTarget": self._links[path]}
        return {} if any(f"{file}/".startswith(f"{path}/") for file in self._files) else None

    def text(self, path: str, limit_bytes: int) -> str | None:
        text = self._files.get(path)
        return text if text is not None and len(text) <= limit_bytes else None

    def names(self, folder: str, limit_bytes: int) -> tuple[str, ...] | None:
        if folder in self._large:
            return None
        below = (posixpath.relpath(path, folder) for path in self._files if path.startswith(f"{folder}/"))
        return tuple(dict.fromkeys(path.partition("/")[0] for path in below)) or None
