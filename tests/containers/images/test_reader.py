"""Paths of an image on the way to its files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpudoctor.containers.images.files import ImageFile
from gpudoctor.containers.images.reader import real_paths

LINK = 1 << 27  # os.ModeSymlink of Go


class Links:
    """The files of an image of which only the links count."""

    def __init__(self, targets: Mapping[str, str]) -> None:
        self._targets = targets
        self.asked: list[str] = []

    def stat(self, path: str) -> Mapping[str, Any] | None:
        self.asked.append(path)
        return {"mode": LINK, "linkTarget": self._targets[path]} if path in self._targets else None

    def text(self, path: str, limit_bytes: int) -> str | None:
        raise AssertionError(path)

    def names(self, folder: str, limit_bytes: int) -> tuple[str, ...] | None:
        raise AssertionError(folder)

    def read(self, folders: Any, sizes: Any) -> dict[str, ImageFile]:
        raise AssertionError(folders)


def test_links_to_folders_are_followed() -> None:
    files = Links({"/bin": "usr/bin", "/data": "/real/data", "/real/data/now": "../2026"})
    wanted = ("/bin/x", "/data/now/a", "/data/b", "/etc/c", "/d")
    assert real_paths(files, wanted) == {
        "/bin/x": "/usr/bin/x",
        "/data/now/a": "/real/2026/a",
        "/data/b": "/real/data/b",
        "/etc/c": "/etc/c",
        "/d": "/d",
    }
    assert len(files.asked) == len(set(files.asked))


def test_links_that_go_in_circles_end() -> None:
    files = Links({"/a": "/b", "/b": "/a", "/c": "c/c"})
    assert set(real_paths(files, ("/a/x", "/c/x"))) == {"/a/x", "/c/x"}


def test_a_deep_path() -> None:
    deep = "/" + "a/" * 2000 + "x"
    assert real_paths(Links({}), (deep,)) == {deep: deep}


def test_so_many_links_are_followed() -> None:
    chain = Links({f"/{number}": f"/{number + 1}" for number in range(12)})
    assert real_paths(chain, ("/2/x", "/0/x")) == {"/2/x": "/12/x", "/0/x": "/10/x"}
