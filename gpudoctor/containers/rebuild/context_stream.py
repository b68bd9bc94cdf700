"""The build context as a tar stream, as docker build sends it: in order, without what `.dockerignore` leaves out."""

import os
import stat
import tarfile
from collections.abc import Iterator

from gpudoctor.containers.builds.context import BuildContext

_CHUNK = 1 << 20
_TYPES = {stat.S_IFREG: tarfile.REGTYPE, stat.S_IFDIR: tarfile.DIRTYPE, stat.S_IFLNK: tarfile.SYMTYPE,
          stat.S_IFIFO: tarfile.FIFOTYPE}  # fmt: skip


def context_stream(context: BuildContext, first: str) -> Iterator[bytes]:
    """Yield the archive. Links are kept, never followed; owner and group are root, as docker build has them.

    first: path of the file that comes first: BuildKit knows a tar archive by its first header.
    """
    writer = _Writer(context, first)
    yield from writer.member(first)
    yield from writer.folder("")
    yield bytes(2 * tarfile.BLOCKSIZE)


class _Writer:
    def __init__(self, context: BuildContext, first: str) -> None:
        self._context = context
        self._first = first
        self._links: dict[tuple[int, int], str] = {}  # by device and inode: the name under which the file was sent

    def folder(self, folder: str) -> Iterator[bytes]:
        """Yield what is below `folder`. An ignored folder is looked into where an exception may take a file in."""
        for name in sorted(os.listdir(self._context.root / folder)):
            path = f"{folder}/{name}" if folder else name
            is_ignored = self._context.ignore.ignores(path)
            if not is_ignored and path != self._first:
                yield from self.member(path)
            found = self._context.entry(path)
            is_folder = found is not None and stat.S_ISDIR(found.st_mode)
            if is_folder and (self._context.ignore.has_exceptions or not is_ignored):
                yield from self.folder(path)

    def member(self, path: str) -> Iterator[bytes]:
        """Yield the header and content of one file, link or folder; nothing for a socket or device."""
        found = self._context.entry(path)
        kind = None if found is None else _TYPES.get(stat.S_IFMT(found.st_mode))
        if found is None or kind is None:
            return
        header = tarfile.TarInfo(path)
        header.type, header.mode, header.mtime = kind, stat.S_IMODE(found.st_mode), int(found.st_mtime)
        if kind == tarfile.SYMTYPE:
            header.linkname = os.readlink(self._context.root / path)
        elif kind == tarfile.REGTYPE and found.st_nlink > 1:
            header.linkname = self._links.setdefault((found.st_dev, found.st_ino), path)
            header.type = kind if header.linkname == path else tarfile.LNKTYPE
            header.linkname = "" if header.linkname == path else header.linkname
        header.size = found.st_size if header.type == tarfile.REGTYPE else 0
        yield header.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape")
        if header.size:
            yield from self._content(path, header.size)

    def _content(self, path: str, size_bytes: int) -> Iterator[bytes]:
        """Yield exactly `size_bytes`, and zeros up to the next block: the header has gone out with that size."""
        left = size_bytes
        descriptor = os.open(self._context.root / path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
        with os.fdopen(descriptor, "rb") as stream:
            while left:
                chunk = stream.read(min(left, _CHUNK))
                if not chunk:
                    raise OSError(f"{path} changed while it was sent")
                left -= len(chunk)
                yield chunk
        yield bytes(-size_bytes % tarfile.BLOCKSIZE)
