"""Files of a container, by the archives that the engine gives out; of an image, by a container that never runs."""

import base64
import json
import os
import posixpath
import stat
import tarfile
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from typing import IO, Any, Protocol, cast

from gpudoctor.containers.builds.context import is_below
from gpudoctor.containers.engines import APIClient
from gpudoctor.containers.engines.connection import seconds_of
from gpudoctor.containers.images.files import ImageFile, Stream, TooLarge, read_archive

LABEL = "gpudoctor.reading"
NEVER_RUN = ["/gpudoctor-never-runs-this"]
SPARE_BYTES = 16 << 20
"""A folder of an image may have this much more than twice what is searched; otherwise files are read one by one."""

WORTH_A_FOLDER = 4
"""Files that are looked for in a folder: for fewer of them, each is asked for by itself."""

_STAT = "X-Docker-Container-Path-Stat"
_LINKS = 10
_GO_DIRECTORY, _GO_LINK, _GO_NOT_REGULAR = 1 << 31, 1 << 27, 0x8F280000  # source: Go's io/fs.FileMode


@contextmanager
def created_container(api: APIClient, image: str) -> Iterator[str]:
    """Create a container of `image`, give its id, and remove it at the end. It is never started."""
    created: dict[str, Any] = api.create_container(
        image, command=NEVER_RUN, entrypoint=[], labels={LABEL: str(os.getpid())}, network_disabled=True
    )
    try:
        yield created["Id"]
    finally:
        api.remove_container(created["Id"], v=True, force=True)


class Files(Protocol):
    """Access to the files of an image or container. Each raises docker.errors.APIError if it fails."""

    def read(self, folders: Iterable[str], sizes: Mapping[str, int]) -> dict[str, ImageFile]:
        """Return the files below `folders` and at the paths of `sizes`, by absolute path."""

    def stat(self, path: str) -> Mapping[str, Any] | None:
        """Return the engine's description of `path`; None if it does not exist."""

    def text(self, path: str, limit_bytes: int) -> str | None:
        """Return the content of a file; None if it does not exist or is larger than `limit_bytes`."""

    def names(self, folder: str, limit_bytes: int) -> tuple[str, ...] | None:
        """Return the names in `folder`; None if it does not exist or is too large to list."""


def real_paths(files: Files, paths: Collection[str]) -> dict[str, str]:
    """Return each path with the links of its folders followed: /usr/bin/x for /bin/x where /bin is a link."""
    targets: dict[str, str] = {}
    folders = {folder: _real_folder(files, folder, targets) for folder in {posixpath.dirname(path) for path in paths}}
    return {path: posixpath.join(folders[posixpath.dirname(path)], posixpath.basename(path)) for path in paths}


def _real_folder(files: Files, folder: str, targets: dict[str, str]) -> str:
    """Return the folder with every link followed. targets: where those lead that were asked for, "" for no link."""
    done, links = "/", 0
    left = folder.strip("/").split("/")
    while left:
        here = posixpath.join(done, left.pop(0))
        if here not in targets:
            about = files.stat(here)
            is_link = about is not None and about["mode"] & _GO_LINK
            targets[here] = posixpath.normpath(posixpath.join(done, about["linkTarget"])) if about and is_link else ""
        if targets[here] and links < _LINKS:
            links += 1
            done, left = "/", [*targets[here].strip("/").split("/"), *left]
        else:
            done = here
    return done


class ContainerFiles:
    """The files of one container as they are now: those of its image, its own changes, and its mounts while it runs."""

    def __init__(self, api: APIClient, container: str) -> None:
        self._api = api
        self._container = container

    def read(self, folders: Iterable[str], sizes: Mapping[str, int]) -> dict[str, ImageFile]:
        """Return the files below `folders` and at the paths of `sizes`, by absolute path.

        folders: read whole, if they contain not much more than what is requested; else what is requested in them.
        sizes: path → size of the file that it is compared with; a file of that size comes with its digest.
        """
        found: dict[str, ImageFile] = {}
        done: list[str] = []
        for folder in sorted({folder.rstrip("/") or "/" for folder in folders}, key=len):
            self._read_folder(folder, sizes, found, done)
        for path, size in sizes.items():
            is_hard_link = path in found and found[path].same_as
            file = self.file(path, size) if is_hard_link or not is_below(path, done) else None
            found.update({} if file is None else {path: file})
        return found

    def _read_folder(self, folder: str, sizes: Mapping[str, int], found: dict[str, ImageFile], done: list[str]) -> None:
        """Read the folder into `found` and note it in `done`; if it contains far too much, the folders in it."""
        if is_below(folder, done):
            return
        if folder != "/" and self._read_whole(folder, sizes, found):
            done.append(folder)
            return
        start = folder.rstrip("/") + "/"
        below = (path[len(start) :].split("/") for path in sizes if path.startswith(start))
        inside = Counter(names[0] for names in below if len(names) > 1)
        for name, files in sorted(inside.items()):
            if files >= WORTH_A_FOLDER:
                self._read_folder(start + name, sizes, found, done)

    def _read_whole(self, folder: str, sizes: Mapping[str, int], found: dict[str, ImageFile]) -> bool:
        """Read the folder whole into `found`; return whether it could be: not if it contains far too much."""
        wanted = sum(size for path, size in sizes.items() if is_below(path, [folder]))
        real, chunks, about = self._open(folder)
        if about is None:
            return True
        moved = {_moved(path, folder, real): size for path, size in sizes.items()}
        try:
            files = read_archive(chunks, posixpath.dirname(real), moved, 2 * wanted + SPARE_BYTES)
        except TooLarge:
            return False
        found.update((_moved(path, real, folder), file) for path, file in files.items())
        return True

    def file(self, path: str, size: int) -> ImageFile | None:
        """Return the file or link at `path`, with its content if it has `size`; None if it does not exist."""
        about = self.stat(path)
        if about is None:
            return None
        if about["mode"] & _GO_DIRECTORY:
            return ImageFile(kind="folder")
        if about["size"] != size and not about["mode"] & _GO_NOT_REGULAR:
            is_executable = bool(about["mode"] & stat.S_IXUSR)
            changed_at = seconds_of(about["mtime"])
            return ImageFile(kind="file", size_bytes=about["size"], is_executable=is_executable, changed_at=changed_at)
        chunks, _ = self._archive(path)
        return read_archive(chunks, posixpath.dirname(path), {path: size}, size + SPARE_BYTES).get(path)

    def whole_file(self, path: str) -> ImageFile | None:
        """Return the file or link at `path` with its content, whatever its size; None if it does not exist."""
        about = self.stat(path)
        return None if about is None else self.file(path, int(about["size"]))

    def stat(self, path: str) -> Mapping[str, Any] | None:
        """Return the engine's description of `path`; None if it does not exist. No content is transferred.

        The fields are `name`, `size`, `mode` (as Go's io/fs.FileMode), `mtime`, `linkTarget`.
        """
        address = f"{self._api.base_url}/v{self._api.api_version}/containers/{self._container}/archive"
        answer = self._api.head(address, params={"path": path}, timeout=self._api.timeout)
        if answer.status_code == HTTPStatus.NOT_FOUND:
            return None
        if not answer.ok or _STAT not in answer.headers:
            _, found = self._archive(path)  # its answer says what is wrong
            return found
        about: Mapping[str, Any] = json.loads(base64.b64decode(answer.headers[_STAT]))
        return about

    def text(self, path: str, limit_bytes: int) -> str | None:
        """Return the content of a file, links followed; None if it does not exist or is larger than `limit_bytes`."""
        _, chunks, about = self._open(path)
        if about is None or about["mode"] & _GO_NOT_REGULAR or about["size"] > limit_bytes:
            return None
        try:
            with tarfile.open(
                fileobj=cast("IO[bytes]", Stream(chunks, limit_bytes + SPARE_BYTES)), mode="r|"
            ) as archive:
                member = archive.next()
                file = None if member is None else archive.extractfile(member)
                return None if file is None else file.read(limit_bytes).decode("utf-8", "replace")
        except (tarfile.TarError, TooLarge):
            return None

    def names(self, folder: str, limit_bytes: int) -> tuple[str, ...] | None:
        """Return the names in `folder`; None if it does not exist or is too large to list."""
        real, chunks, about = self._open(folder)
        if about is None:
            return None
        try:
            files = read_archive(chunks, posixpath.dirname(real), {}, limit_bytes)
        except TooLarge:
            return None
        start = real.rstrip("/") + "/"
        return tuple({path[len(start) :].split("/")[0]: None for path in files if path.startswith(start)})

    def _open(self, folder: str) -> tuple[str, Iterable[bytes], Mapping[str, Any] | None]:
        """Return the archive of `folder`, with its real path where links lead to another; empty if there is none."""
        real = folder
        for _ in range(_LINKS):
            chunks, about = self._archive(real)
            if about is None or not about["mode"] & _GO_LINK:
                return real, chunks, about
            real = posixpath.normpath(posixpath.join(posixpath.dirname(real), about["linkTarget"]))
        return folder, (), None

    def _archive(self, path: str) -> tuple[Iterable[bytes], Mapping[str, Any] | None]:
        """Return the engine's archive of `path` and what the engine says about it; None if nothing is there."""
        from docker.errors import APIError, NotFound

        try:
            chunks, about = self._api.get_archive(self._container, path)
        except NotFound:
            return (), None
        except APIError as error:
            if "not a directory" in str(error.explanation):  # the path continues below a file
                return (), None
            raise
        return chunks, about


def _moved(path: str, old: str, new: str) -> str:
    """Return `path` with the folder `old` at its beginning replaced by `new`."""
    return new + path[len(old) :] if is_below(path, [old]) else path
