"""The build context: the folder that a build may take files from, without what `.dockerignore` leaves out."""

import hashlib
import os
import posixpath
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

from gpudoctor.containers.builds.dockerignore import DockerIgnore, parse_dockerignore
from gpudoctor.model.record import record

MAXIMUM_ENTRIES = 200_000
"""A context with more files is not compared: it takes longer than a build."""

MAXIMUM_LINKS = 40
"""As many links in a row as Linux follows."""

_CHUNK_BYTES = 1 << 20


class TooLarge(Exception):
    """There are too many entries to compare."""


@record
class ContextFile:
    """One file or link of the context.

    path: relative to the context, with "/".
    link_target: "" for a regular file.
    content: of a here-document, which is in the Dockerfile and not in the context.
    digest: SHA-256 of the content of a member of an archive; `path` is that of the archive then.
    changed_at: when it was last changed, content or metadata: seconds since 1970, of its ctime and mtime the newer.
    modified_at: its mtime, seconds since 1970.
    has_other_names: hard links lead to it, by which it may be written too.
    """

    path: str
    size_bytes: int
    is_executable: bool = False
    link_target: str = ""
    changed_at: float = 0.0
    modified_at: float = 0.0
    content: str | None = None
    digest: str = ""
    has_other_names: bool = False


class BuildContext:
    """A folder with its `.dockerignore`. Nothing outside it is ever read: links are followed within it.

    is_own_ignore: its `.dockerignore` is one of the Dockerfile's own, as only BuildKit and Buildah read it.
    """

    def __init__(self, root: Path, ignore: DockerIgnore | None = None, *, is_own_ignore: bool = False) -> None:
        self.root = root
        self.ignore = ignore or DockerIgnore()
        self.is_own_ignore = is_own_ignore
        self._entries = 0

    def entering_few(self) -> "BuildContext":
        """Return the context as builders see it that enter few of the ignored folders."""
        return BuildContext(self.root, self.ignore.entering_few(), is_own_ignore=self.is_own_ignore)

    def digest(self, file: ContextFile) -> str:
        """Return the SHA-256 of the file's content."""
        if file.digest:
            return file.digest
        if file.content is not None:
            return hashlib.sha256(file.content.encode()).hexdigest()
        with (self.root / file.path).open("rb") as stream:
            return digest_of(stream)

    def entry(self, path: str) -> os.stat_result | None:
        """Return the entry at `path` without following links; None if there is none."""
        try:
            return (self.root / path).lstat()
        except (OSError, ValueError):
            return None

    def names(self, folder: str) -> list[str]:
        """Return the sorted names in `folder`; empty if it is not a folder."""
        try:
            return sorted(os.listdir(self.root / folder))
        except (FileNotFoundError, NotADirectoryError):
            return []

    def resolve(self, path: str) -> str:
        """Return `path` with its links resolved as if the context were the root of the disk."""
        names, done, links = path.split("/"), "", 0
        while names:
            name = names.pop(0)
            here = posixpath.normpath(posixpath.join("/", done, name)).lstrip("/")
            found = self.entry(here)
            if found is not None and stat.S_ISLNK(found.st_mode) and links < MAXIMUM_LINKS:
                links += 1
                target = os.readlink(self.root / here)
                done = "" if target.startswith("/") else posixpath.dirname(here)
                names = [*(part for part in target.split("/") if part), *names]
            else:
                done = here
        return done

    def walk(self, folder: str) -> Iterator[ContextFile]:
        """Yield the files and links below `folder` ("" for all), in order, ignored ones too; links are not followed.

        Raises:
            TooLarge: see MAXIMUM_ENTRIES.
            OSError: a folder cannot be read.
        """
        with os.scandir(self.root / folder) as found:
            entries = sorted(found, key=lambda entry: entry.name)
        for entry in entries:
            self._entries += 1
            if self._entries > MAXIMUM_ENTRIES:
                raise TooLarge(f"more than {MAXIMUM_ENTRIES:,} files in the context")
            path = f"{folder}/{entry.name}" if folder else entry.name
            if entry.is_dir(follow_symlinks=False):
                if self.ignore.has_exceptions or not self.ignore.ignores(path):
                    yield from self.walk(path)
            elif entry.is_file(follow_symlinks=False) or entry.is_symlink():
                yield self.file(path, entry.stat(follow_symlinks=False))

    def file(self, path: str, found: os.stat_result) -> ContextFile:
        """Return the file at `path`, whose `found` is known."""
        return ContextFile(
            path=path,
            size_bytes=found.st_size,
            is_executable=bool(found.st_mode & stat.S_IXUSR),
            link_target=os.readlink(self.root / path) if stat.S_ISLNK(found.st_mode) else "",
            changed_at=max(found.st_ctime, found.st_mtime),
            modified_at=found.st_mtime,
            has_other_names=found.st_nlink > 1,
        )


def digest_of(stream: IO[bytes] | None) -> str:
    """Return the SHA-256 of the rest of the stream, which is read in pieces."""
    assert stream is not None, "a regular file"
    digest = hashlib.sha256()
    while chunk := stream.read(_CHUNK_BYTES):
        digest.update(chunk)
    return digest.hexdigest()


def is_below(path: str, folders: Iterable[str]) -> bool:
    """Return whether `path` is one of the folders, or is inside one."""
    return any(path == folder or path.startswith(f"{folder.rstrip('/')}/") for folder in folders)


def read_context(root: Path, dockerfile: Path | None = None) -> BuildContext:
    """Return the context at `root`, with the `.dockerignore` of `dockerfile` if it has one of its own.

    Raises:
        ValueError: the `.dockerignore` is wrong; the message names file and line.
    """
    own = () if dockerfile is None else (dockerfile.with_name(f"{dockerfile.name}.dockerignore"),)
    for path in (*own, root / ".dockerignore"):
        try:
            text = path.read_text(encoding="utf-8", errors="surrogateescape")
        except FileNotFoundError:
            continue
        try:
            return BuildContext(root, parse_dockerignore(text), is_own_ignore=path.name != ".dockerignore")
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None
    return BuildContext(root)
