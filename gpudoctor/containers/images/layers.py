"""Single layers of an image, out of the stream of `docker save`: slow, read only where the final files leave doubt."""

import json
import posixpath
import tarfile
from collections.abc import Callable, Iterable, Mapping
from io import BufferedReader
from typing import IO, Any, cast

from gpudoctor.containers.images.files import ImageFile, Stream, entry_of, path_of
from gpudoctor.model.record import record

MAXIMUM_JSON_BYTES = 16 << 20


class Unreadable(Exception):
    """The layers cannot be read, or not in time."""


@record
class Layer:
    """One layer: the text of the history that made it, and those of the files asked for that are in it."""

    created_by: str
    files: Mapping[str, ImageFile]


def read_layers(chunks: Iterable[bytes], sizes: Mapping[str, int], in_time: Callable[[], bool]) -> tuple[Layer, ...]:
    """Return the layers of the one image in the archive that `docker save` streams, the lowest first.

    sizes: path in the image → size for which the digest is taken; no other file is looked at.
    in_time: says whether to go on reading.

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
    except (tarfile.TarError, ValueError, LookupError, TypeError, OSError, RecursionError) as error:
        raise Unreadable(f"docker save gave what is not understood: {type(error).__name__}") from None


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
        """Return the wanted files of a layer; None where the stream is none."""
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
            raise ValueError("its history does not fit its layers")
        layers = []
        for name, item in zip(names, history, strict=True):
            files = self._layers[name]
            if files is None:
                raise ValueError("a layer is compressed in a way that is not known")
            layers.append(Layer(created_by=str(item.get("created_by", "")), files=files))
        return tuple(layers)
