"""Files of an image, out of the archives that the engine streams. Nothing of them is run, and nothing is written."""

import math
import posixpath
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from typing import IO, cast

from gpudoctor.containers.builds.context import digest_of
from gpudoctor.model.record import record

MAXIMUM_ENTRIES = 300_000


class TooLarge(Exception):
    """The archive holds more than is read."""


@record
class ImageFile:
    """One file, link or folder of an image.

    kind: "file", "link", "folder" or "other" (a device, a pipe).
    digest: SHA-256 of the content, "" where it was not asked for.
    changed_at: its modification time, seconds since 1970.
    same_as: for a hard link, the path of the same file that stands before it in the archive.
    """

    kind: str
    size_bytes: int = 0
    is_executable: bool = False
    link_target: str = ""
    digest: str = ""
    changed_at: float = 0.0
    same_as: str = ""

    @property
    def identity(self) -> tuple[object, ...]:
        """Return what is equal for two files that a program cannot tell apart."""
        return self.kind, self.size_bytes, self.is_executable, self.link_target, self.digest


def read_archive(
    chunks: Iterable[bytes], parent: str, sizes: Mapping[str, int], limit_bytes: int
) -> dict[str, ImageFile]:
    """Return what a tar archive holds, by absolute path in the image.

    parent: the folder of the image to which the names in the archive are relative.
    sizes: path → size of the file that it is compared with: the content of a file of another size is not looked at.
    limit_bytes: how much of the archive is read.

    Raises:
        TooLarge: there are more entries or bytes.
        ValueError: it is no archive.
    """
    found: dict[str, ImageFile] = {}
    try:
        with tarfile.open(fileobj=cast("IO[bytes]", Stream(chunks, limit_bytes)), mode="r|") as archive:
            for member in archive:
                path = path_of(parent, member.name)
                if path is not None:
                    found[path] = entry_of(archive, member, parent, sizes.get(path))
                if len(found) > MAXIMUM_ENTRIES:
                    raise TooLarge(f"more than {MAXIMUM_ENTRIES:,} files")
                archive.members.clear()  # type: ignore[attr-defined]  # else memory grows with the archive
    except tarfile.TarError as error:
        raise ValueError(f"the engine's archive cannot be read: {error}") from None
    return found


def path_of(parent: str, name: str) -> str | None:
    """Return the absolute path of a member; None for a name that leads out of the archive."""
    if name.startswith("/") or ".." in name.split("/"):
        return None
    return posixpath.normpath(posixpath.join("/", parent, name))


def entry_of(archive: tarfile.TarFile, member: tarfile.TarInfo, parent: str, size: int | None) -> ImageFile:
    """Return the member of an archive that is being read; with its digest where it is a file of `size` bytes."""
    if member.isdir():
        return ImageFile(kind="folder", changed_at=member.mtime)
    if member.issym():
        return ImageFile(kind="link", link_target=member.linkname, changed_at=member.mtime)
    if not (member.isfile() or member.islnk()):
        return ImageFile(kind="other")
    return ImageFile(
        kind="file",
        size_bytes=member.size,
        is_executable=bool(member.mode & 0o100),
        digest=digest_of(archive.extractfile(member)) if member.isfile() and member.size == size else "",
        changed_at=member.mtime,
        same_as=(path_of(parent, member.linkname) or "") if member.islnk() else "",
    )


class Stream:
    """Chunks of bytes as a file that is read once, from front to back."""

    def __init__(self, chunks: Iterable[bytes], limit_bytes: float = math.inf) -> None:
        self._chunks: Iterator[bytes] = iter(chunks)
        self._left = limit_bytes

    def read(self, _size: int = -1) -> bytes:
        """Return the next chunk, b"" at the end. tarfile takes any length."""
        chunk = next(self._chunks, b"")
        self._left -= len(chunk)
        if self._left < 0:
            raise TooLarge("more data than is read")
        return chunk
