"""Archives of an image's files: what is read of them, and what hostile ones cannot do."""

from __future__ import annotations

import hashlib
import tarfile
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, repeat

import pytest

from gpudoctor.containers.images import files as image_files
from gpudoctor.containers.images.files import ImageFile, TooLarge, path_of, read_archive
from tests.containers.archives import archive, chunks, many, member

MIB = 1 << 20


def read(data: bytes, sizes: dict[str, int] | None = None, limit_bytes: int = MIB) -> dict[str, ImageFile]:
    return read_archive(chunks(data), "/app", sizes or {}, limit_bytes)


def test_a_file_of_the_size_asked_for_comes_with_its_digest() -> None:
    data = archive(member("common/a.py", b"abc", mode=0o755, mtime=100), member("common/b.py", b"abc"))
    found = read(data, {"/app/common/a.py": 3, "/app/common/b.py": 4})
    assert found["/app/common/a.py"] == ImageFile(
        kind="file", size_bytes=3, is_executable=True, digest=hashlib.sha256(b"abc").hexdigest(), changed_at=100
    )
    assert found["/app/common/b.py"].digest == ""


def test_links_and_folders() -> None:
    data = archive(
        member("d", type=tarfile.DIRTYPE),
        member("d/file", b"x"),
        member("d/link", type=tarfile.SYMTYPE, linkname="../../etc/passwd"),
        member("d/hard", type=tarfile.LNKTYPE, linkname="d/file"),
    )
    found = read(data, {"/app/d/hard": 0})
    assert found["/app/d"].kind == "folder"
    assert (found["/app/d/link"].kind, found["/app/d/link"].link_target) == ("link", "../../etc/passwd")
    assert (found["/app/d/hard"].same_as, found["/app/d/hard"].digest) == ("/app/d/file", "")


@pytest.mark.parametrize("name", ["/etc/passwd", "../etc/passwd", "a/../../b", ".."])
def test_names_that_lead_out_are_passed_over(name: str) -> None:
    assert path_of("/app", name) is None
    assert read(archive(member(name, b"x"), member("good", b"y"))).keys() == {"/app/good"}


def test_a_hard_link_out_of_the_archive_is_the_same_as_nothing() -> None:
    found = read(archive(member("hard", type=tarfile.LNKTYPE, linkname="/etc/shadow")), {"/app/hard": 0})
    assert (found["/app/hard"].same_as, found["/app/hard"].digest) == ("", "")


@pytest.mark.parametrize("kind", [tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE])
def test_devices_and_pipes_are_never_opened(kind: bytes) -> None:
    found = read(archive(member("zero", type=kind, devmajor=1, devminor=5)), {"/app/zero": 0})
    assert found == {"/app/zero": ImageFile(kind="other")}


@pytest.mark.parametrize("name", ["with space", "new\nline", "esc\x1b[31m", "bell\a", "uni\u00e9", "\udcff", "a" * 300])
def test_names_stay_as_they_are(name: str) -> None:
    assert read(archive(member(name, b"x"))).keys() == {f"/app/{name}"}


def test_too_many_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image_files, "MAXIMUM_ENTRIES", 1000)
    with pytest.raises(TooLarge, match="files"):
        read_archive(many(1_000_000), "/", {}, 1 << 40)


def test_a_giant_is_not_held_in_memory() -> None:
    size = 256 * MIB
    head = member("giant", size=size)[0]
    head.size = size
    data = chain([head.tobuf()], repeat(bytes(MIB), 256), [bytes(1024)])
    tracemalloc.start()
    try:
        found = read_archive(data, "/", {}, 1 << 40)
        assert tracemalloc.get_traced_memory()[1] < 16 * MIB
    finally:
        tracemalloc.stop()
    assert (found["/giant"].size_bytes, found["/giant"].digest) == (size, "")


def test_more_data_than_the_limit_is_not_read() -> None:
    taken: list[int] = []

    def data() -> Iterator[bytes]:
        for number in range(1000):
            taken.append(number)
            yield bytes(MIB)

    head = member("giant")[0]
    head.size = 1000 * MIB
    with pytest.raises(TooLarge, match="data"):
        read_archive(chain([head.tobuf()], data()), "/", {"/giant": head.size}, 4 * MIB)
    assert len(taken) <= 5


@pytest.mark.parametrize("size", [1 << 62, (1 << 33) - 1])
def test_a_size_that_is_not_there(size: int) -> None:
    head = member("liar")[0]
    head.size = size
    with pytest.raises(ValueError, match="cannot be read"):
        read_archive([head.tobuf(tarfile.GNU_FORMAT), b"short"], "/", {"/liar": size}, MIB)


@pytest.mark.parametrize("data", [b"no archive at all" * 100, b"\x00" * 100, b"\x1f\x8b" + bytes(600)])
def test_what_is_no_archive(data: bytes) -> None:
    with pytest.raises(ValueError, match="cannot be read"):
        read(data)


def test_an_archive_that_ends_early() -> None:
    data = archive(member("a", b"x" * 2000))
    with pytest.raises(ValueError, match="cannot be read"):
        read(data[:1200], {"/app/a": 2000})


FILE = ImageFile(
    kind="file", size_bytes=3, is_executable=True, link_target="x", digest="d", changed_at=1.0, same_as="y"
)


@pytest.mark.parametrize(
    ("field", "value", "tells"),
    [
        *(("kind", "link", True), ("size_bytes", 4, True), ("is_executable", False, True), ("link_target", "", True)),
        *(("digest", "e", True), ("changed_at", 2.0, False), ("same_as", "", False)),
    ],
)
def test_what_distinguishes_two_files(field: str, value: object, tells: bool) -> None:
    assert (replace(FILE, **{field: value}).identity != FILE.identity) is tells  # type: ignore[arg-type]
