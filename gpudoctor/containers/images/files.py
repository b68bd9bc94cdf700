"""Files of an image, out of the archives that the engine streams. Nothing of them is run, and nothing is written.

Single layers come out of the stream of `docker save`: slow, read only if the final files leave doubt.
"""

import json
import math
import posixpath
import stat
import tarfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from io import BufferedReader
from typing import IO, Any, cast

from gpudoctor.containers.builds.context import digest_of
from gpudoctor.model.record import record

MAXIMUM_ENTRIES = 300_000
MAXIMUM_JSON_BYTES = 16 << 20


class TooLarge(Exception):
    """The archive is too large to be read."""


@record
class ImageFile:
    """One file, link or folder of an image.

    kind: "file", "link", "folder" or "other" (a device, a pipe).
    digest: SHA-256 of the content, "" if it was not asked for.
    changed_at: its modification time, seconds since 1970.
    same_as: for a hard link, the path of the same file before it in the archive.
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
        """Return the properties that make two files equal for a program."""
        return self.kind, self.size_bytes, self.is_executable, self.link_target, self.digest


def read_archive(
    chunks: Iterable[bytes], parent: str, sizes: Mapping[str, int], limit_bytes: int
) -> dict[str, ImageFile]:
    """Return what a tar archive contains, by absolute path in the image.

    parent: the folder of the image to which the names in the archive are relative.
    sizes: path → size of the file that it is compared with: the content of a file of another size is not looked at.
    limit_bytes: how much of the archive is read.

    Raises:
        TooLarge: there are more entries or bytes.
        ValueError: it is not an archive.
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
    """Return the absolute path of a member; None if its name points outside of the archive."""
    if name.startswith("/") or ".." in name.split("/"):
        return None
    return posixpath.normpath(posixpath.join("/", parent, name))


def entry_of(archive: tarfile.TarFile, member: tarfile.TarInfo, parent: str, size: int | None) -> ImageFile:
    """Return the member of an archive that is being read; with its digest if it is a file of `size` bytes."""
    if member.isdir():
        return ImageFile(kind="folder", changed_at=member.mtime)
    if member.issym():
        return ImageFile(kind="link", link_target=member.linkname, changed_at=member.mtime)
    if not (member.isfile() or member.islnk()):
        return ImageFile(kind="other")
    return ImageFile(
        kind="file",
        size_bytes=member.size,
        is_executable=bool(member.mode & stat.S_IXUSR),
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
            raise TooLarge("more data than gpudoctor reads")
        return chunk


class Unreadable(Exception):
    """The layers cannot be read, or reading takes too long."""


@record
class Layer:
    """One layer: the text of the history that made it, and those of the files asked for that are in it."""

    created_by: str
    files: Mapping[str, ImageFile]


def read_layers(chunks: Iterable[bytes], sizes: Mapping[str, int], in_time: Callable[[], bool]) -> tuple[Layer, ...]:
    """Return the layers of the one image in the archive that `docker save` streams, the lowest first.

    sizes: path in the image → size for which the digest is taken; no other file is looked at.
    in_time: says whether to continue reading.

    Raises:
        Unreadable: the archive is not understood, or reading takes too long.
    """
    archive = _Saved(sizes, in_time)
    try:
        with tarfile.open(fileobj=cast("IO[bytes]", Stream(chunks)), mode="r|") as outer:
            for member in outer:
                archive.take(outer, member)
                outer.members.clear()  # type: ignore[attr-defined]  # else memory grows with the archive
        return archive.layers()
    except (tarfile.TarError, ValueError, LookupError, TypeError, AttributeError, OSError, RecursionError) as error:
        raise Unreadable(f"the output of docker save cannot be read: {type(error).__name__}") from None


class _Saved:
    """What was read of the archive so far: its JSON files, and the wanted files of everything that is a layer."""

    def __init__(self, sizes: Mapping[str, int], in_time: Callable[[], bool]) -> None:
        self._sizes = sizes
        self._in_time = in_time
        self._documents: dict[str, Any] = {}
        self._layers: dict[str, dict[str, ImageFile] | None] = {}
        self._links: dict[str, str] = {}

    def take(self, outer: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        if member.issym():  # older engines write a layer that two images share once
            self._links[member.name] = posixpath.normpath(
                posixpath.join(posixpath.dirname(member.name), member.linkname)
            )
        stream = outer.extractfile(member) if member.isfile() else None
        if stream is None:
            return
        may_be_json = member.size <= MAXIMUM_JSON_BYTES and not member.name.endswith(".tar")
        if may_be_json and cast("BufferedReader", stream).peek(1)[:1] in (b"{", b"["):
            self._documents[member.name] = json.loads(stream.read())
        else:
            self._layers[member.name] = self._files(stream)

    def _files(self, stream: IO[bytes]) -> dict[str, ImageFile] | None:
        """Return the wanted files of a layer; None if the stream is not a layer."""
        found: dict[str, ImageFile] = {}
        try:
            with tarfile.open(fileobj=stream, mode="r|*") as layer:
                for member in layer:
                    if not self._in_time():
                        raise Unreadable("reading its layers takes too long")
                    path = path_of("/", member.name)
                    if path is not None and path in self._sizes:
                        entry = entry_of(layer, member, "/", self._sizes[path])
                        found[path] = found.get(entry.same_as, entry)
                    layer.members.clear()  # type: ignore[attr-defined]
        except tarfile.ReadError:  # neither JSON nor a layer that can be read: "1.0", a compression of its own
            return None
        return found

    def layers(self) -> tuple[Layer, ...]:
        """Return the layers in their order, each with the line of the history that made it."""
        manifest = self._documents["manifest.json"][0]
        history = [item for item in self._documents[manifest["Config"]]["history"] if not item.get("empty_layer")]
        names = [self._links.get(name, name) for name in manifest["Layers"]]
        if len(names) != len(history):
            raise ValueError("its history does not match its layers")
        layers = []
        for name, item in zip(names, history, strict=True):
            files = self._layers[name]
            if files is None:
                raise ValueError("a layer has an unknown compression")
            layers.append(Layer(created_by=str(item.get("created_by", "")), files=files))
        return tuple(layers)
