"""A build by the engine's API, if no docker command line can do it: the context goes there as a tar stream."""

import base64
import contextlib
import os
import shlex
import stat
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import field
from pathlib import Path
from typing import IO, Any, cast

from gpudoctor.containers.builds.context import BuildContext, read_context
from gpudoctor.containers.engines import APIClient
from gpudoctor.containers.rebuild.steps import BuildFailed, Progress
from gpudoctor.model.record import record

_VERTEXES, _LOGS = 1, 3  # of StatusResponse: github.com/moby/buildkit/api/services/control/control.proto
_NAME, _CACHED, _STARTED, _COMPLETED = 3, 4, 5, 6  # of Vertex
_MESSAGE = 4  # of VertexLog

_CHUNK_BYTES = 1 << 20
_TYPES = {stat.S_IFREG: tarfile.REGTYPE, stat.S_IFDIR: tarfile.DIRTYPE, stat.S_IFLNK: tarfile.SYMTYPE,
          stat.S_IFIFO: tarfile.FIFOTYPE}  # fmt: skip
_LOST_CONTEXT = "http://build-context-"
"""Where Docker 26.1 with containerd's image store looks for the context, on the network. 20.10 and 28.5 have it."""


@record
class EngineBuild:
    """POST /build. Source: ImageBuild of the Docker Engine API; version "2" is BuildKit."""

    api: APIClient
    dockerfile: Path
    context: Path
    tag: str
    buildkit: bool
    target: str | None = None
    arguments: Mapping[str, str] = field(default_factory=dict)
    no_cache: bool = False

    def __str__(self) -> str:
        options = {"t": self.tag, "version": "2" if self.buildkit else "1", "nocache": str(self.no_cache).lower()}
        query = "&".join(f"{name}={value}" for name, value in options.items())
        return f"# the engine's API: POST /build?{query}, with {shlex.quote(str(self.context))} as a tar stream"

    def run(self, progress: Progress) -> None:
        """Send the context and build. Raises BuildFailed: the engine says so, or the context cannot be sent."""
        from docker.errors import DockerException
        from requests import RequestException

        try:
            context = read_context(self.context, self.dockerfile if self.buildkit else None)
            context = context if self.buildkit else context.entering_few()
            stream = context_stream(context, _sendable(context, self.dockerfile))
            with _version(self.api, buildkit=self.buildkit):
                answers = self.api.build(
                    fileobj=cast("IO[bytes]", stream),  # sent piece by piece
                    custom_context=True,
                    dockerfile=_inside(context, self.dockerfile),
                    tag=self.tag,
                    target=self.target,
                    buildargs=dict(self.arguments),
                    nocache=self.no_cache,
                    rm=True,
                    forcerm=True,
                    timeout=round(progress.timeout_seconds),
                    decode=True,
                )
            for answer in answers:
                _take(answer, progress)
        except (DockerException, RequestException, OSError, ValueError) as error:
            raise BuildFailed(f"the build failed: {error}", progress.last_lines) from None


def _take(answer: Mapping[str, Any], progress: Progress) -> None:
    """Take in one answer of the engine; raise BuildFailed if it says so."""
    if _LOST_CONTEXT in str(answer.get("error")):
        raise BuildFailed("this engine loses the context if it is sent through its API: install docker's plugin buildx")
    if "error" in answer:
        raise BuildFailed(f"the build failed: {answer['error']}", progress.last_lines)
    progress.add(str(answer.get("stream") or ""))
    if answer.get("id") == "moby.buildkit.trace":
        with contextlib.suppress(ValueError):
            for line in lines_of(base64.b64decode(str(answer.get("aux")))):
                progress.add(line)


def _inside(context: BuildContext, dockerfile: Path) -> str:
    return dockerfile.resolve().relative_to(context.root.resolve()).as_posix()


def _sendable(context: BuildContext, dockerfile: Path) -> str:
    """Return the path of the Dockerfile in the context; raise BuildFailed if it is not sent there."""
    try:
        path = _inside(context, dockerfile)
    except ValueError:
        raise BuildFailed(f"{dockerfile} is outside the context: install docker's plugin buildx") from None
    if context.ignore.ignores(path):
        raise BuildFailed(f".dockerignore excludes {path}: install docker's plugin buildx")
    return path


@contextlib.contextmanager
def _version(api: APIClient, *, buildkit: bool) -> Iterator[None]:
    """Have requests name the builder, which docker-py cannot: its `build` knows the classic one only."""
    before = api.params
    api.params = {"version": "2" if buildkit else "1"}
    try:
        yield
    finally:
        api.params = before


@record
class EnginePrune:
    """POST /build/prune of BuildKit's copies of contexts."""

    api: APIClient

    def __str__(self) -> str:
        return '# the engine\'s API: POST /build/prune?filters={"type":["source.local"]}'

    def run(self, progress: Progress) -> None:
        """Remove the copies. Raises BuildFailed: the engine refuses."""
        from docker.errors import DockerException

        try:
            self.api.prune_builds(filters=cast("Any", {"type": ["source.local"]}))
        except DockerException as error:
            raise BuildFailed(
                f"BuildKit's copy of the context cannot be removed: {error}", progress.last_lines
            ) from None


def lines_of(message: bytes) -> Iterator[str]:
    """Yield what BuildKit's StatusResponse `message` says, as `docker build` would write it.

    The engine sends it as protocol buffers. The names of steps and what they write are taken from it.

    Raises:
        ValueError: it is not such a message.
    """
    for number, value in _fields(message):
        fields = dict(_fields(value)) if number in (_VERTEXES, _LOGS) and isinstance(value, bytes) else {}
        if number == _LOGS:
            yield _text(fields.get(_MESSAGE))
        elif fields.get(_CACHED):
            yield f"{_text(fields.get(_NAME))} CACHED"
        elif _STARTED in fields and _COMPLETED not in fields:
            yield _text(fields.get(_NAME))


def _text(value: int | bytes | None) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else ""


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield the fields of a message: number and value. Source: https://protobuf.dev/programming-guides/encoding/"""
    place = 0
    while place < len(message):
        key, place = _varint(message, place)
        kind = key & 7
        if kind == 0:
            value, place = _varint(message, place)
            yield key >> 3, value
            continue
        length, place = _varint(message, place) if kind == 2 else ({1: 8, 5: 4}.get(kind, 0), place)
        if (not length and kind != 2) or place + length > len(message):
            raise ValueError("no message of BuildKit")
        yield key >> 3, message[place : place + length]
        place += length


def _varint(message: bytes, place: int) -> tuple[int, int]:
    value = 0
    for number in range(10):  # of the bytes of 64 bits
        if place >= len(message):
            break
        byte = message[place]
        place += 1
        value |= (byte & 0x7F) << 7 * number
        if byte < 0x80:
            return value, place
    raise ValueError("no message of BuildKit")


def context_stream(context: BuildContext, first: str) -> Iterator[bytes]:
    """Yield the context as a tar archive, as docker build sends it: in order, without what `.dockerignore` leaves out.

    Links are kept, never followed; owner and group are root.

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
        """Yield what is below `folder`. An ignored folder is searched if an exception may take a file in."""
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
        elif kind == tarfile.REGTYPE:
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
                chunk = stream.read(min(left, _CHUNK_BYTES))
                if not chunk:
                    raise OSError(f"{path} changed while it was sent")
                left -= len(chunk)
                yield chunk
        yield bytes(-size_bytes % tarfile.BLOCKSIZE)
