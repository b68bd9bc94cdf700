"""What the engine answers to a build by its API, without an engine."""

from __future__ import annotations

import base64
import io
import os
import socket
import tarfile
import tracemalloc
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from docker.errors import APIError, DockerException
from hypothesis import given
from hypothesis import strategies as st
from requests import RequestException

from gpudoctor.containers.builds.context import BuildContext, read_context
from gpudoctor.containers.rebuild import engine_build
from gpudoctor.containers.rebuild.engine_build import EngineBuild, context_stream, lines_of
from gpudoctor.containers.rebuild.steps import BuildFailed, Progress


class Engine:
    """Answers every build with the same error."""

    def __init__(self, error: str) -> None:
        self.params: Mapping[str, str] = {}
        self._error = error

    def build(self, **_: Any) -> Iterator[dict[str, str]]:
        yield {"stream": "Step 1/1 : FROM scratch"}
        yield {"error": self._error}


@pytest.mark.parametrize(
    ("error", "told"),
    [
        pytest.param("no such file", "the build failed: no such file", id="of the build"),
        pytest.param(
            'failed to load cache key: Get "http://build-context-1cuoyc": dial tcp: lookup build-context-1cuoyc',
            "this engine loses the context if it is sent through its API: install docker's plugin buildx",
            id="of the engine: Docker 26.1.5 with containerd's image store",
        ),
    ],
)
def test_an_error(error: str, told: str, tmp_path: Path) -> None:
    dockerfile = tmp_path / "Dockerfile"
    dockerfile.write_text("FROM scratch\n")
    build = EngineBuild(
        api=Engine(error),  # type: ignore[arg-type]
        dockerfile=dockerfile,
        context=tmp_path,
        tag="t",
        buildkit=True,
    )
    with pytest.raises(BuildFailed) as failed:
        build.run(Progress(lambda _: None, lambda _: None, timeout_seconds=10))
    assert str(failed.value) == told


@pytest.mark.parametrize(
    "error", [DockerException("no"), APIError("no"), RequestException("no"), OSError("no"), ValueError("no")]
)
def test_a_context_that_cannot_be_sent(error: Exception, tmp_path: Path) -> None:
    def fail(**_: Any) -> Any:
        raise error

    (tmp_path / "Dockerfile").write_text("FROM scratch\n")
    api: Any = SimpleNamespace(build=fail, params={})
    build = EngineBuild(api=api, dockerfile=tmp_path / "Dockerfile", context=tmp_path, tag="t", buildkit=True)
    with pytest.raises(BuildFailed, match="^the build failed: no$"):
        build.run(Progress(lambda _: None, lambda _: None, timeout_seconds=10))


STARTED = (  # as dockerd 20.10 sent it
    "CnwKR3NoYTI1NjoyYmUwNGQxMjdmOGYwNmI5Y2VlYjc5ZmI2NDhlMDg4YzMxNjc3NTk2OTgyM2Q1ZTY1YjUzZTc0OWM2M2MzZDdjGiRbaW50ZXJu"
    "YWxdIGxvYWQgcmVtb3RlIGJ1aWxkIGNvbnRleHQqCwjIw4bYBhDSleVe"
)


def varint(number: int) -> bytes:
    """Return the number as BuildKit writes it: seven bits a byte, the lowest first."""
    return bytes([0x80 | (number & 0x7F)]) + varint(number >> 7) if number > 0x7F else bytes([number])


def field(number: int, value: bytes) -> bytes:
    return bytes([number << 3 | 2, len(value)]) + value


def test_a_step_that_starts() -> None:
    assert list(lines_of(base64.b64decode(STARTED))) == ["[internal] load remote build context"]


def test_a_step_out_of_the_cache() -> None:
    vertex = field(3, b"[2/3] COPY a b") + bytes([4 << 3, 1])
    assert list(lines_of(field(1, vertex))) == ["[2/3] COPY a b CACHED"]


@pytest.mark.parametrize("length", [127, 128, 129, 16384])
def test_a_name_as_long_as_one_byte_of_its_length_can_say_and_longer(length: int) -> None:
    name = b"x" * length
    vertex = b"\x1a" + varint(length) + name + field(5, b"t")
    assert list(lines_of(b"\x0a" + varint(len(vertex)) + vertex)) == [name.decode()]


def test_a_name_whose_length_takes_two_bytes() -> None:
    name = b"[1/2] RUN " + b"x" * 290  # 300 is written as AC 02
    vertex = b"\x1a\xac\x02" + name + bytes([5 << 3, 1])
    assert list(lines_of(b"\x0a" + bytes([0x80 | (len(vertex) & 0x7F), len(vertex) >> 7]) + vertex)) == [name.decode()]


@pytest.mark.parametrize(
    "unknown",
    [
        pytest.param(bytes([9 << 3, 0xFF, 0xFF, 0x03]), id="a number of three bytes"),
        pytest.param(bytes([9 << 3, *[0xFF] * 9, 0x01]), id="the longest number: ten bytes"),
        pytest.param(bytes([9 << 3 | 1, *[0x1A] * 8]), id="eight bytes"),
        pytest.param(bytes([9 << 3 | 5, *[0x1A] * 4]), id="four bytes"),
        pytest.param(bytes([9 << 3 | 2, 0]), id="empty bytes"),
    ],
)
def test_unknown_fields_are_skipped(unknown: bytes) -> None:
    vertex = unknown + field(3, b"[2/3] COPY a b") + unknown + bytes([4 << 3, 1])
    assert list(lines_of(unknown + field(1, vertex) + unknown)) == ["[2/3] COPY a b CACHED"]


def test_a_step_that_has_ended_is_not_reported_again() -> None:
    started, completed = bytes([5 << 3, 1]), bytes([6 << 3, 1])
    assert list(lines_of(field(1, field(3, b"[2/3] RUN x") + started + completed))) == []
    assert list(lines_of(field(1, field(3, b"[2/3] RUN x")))) == []


def test_what_a_step_writes() -> None:
    log = field(1, b"sha256:0") + bytes([3 << 3, 1]) + field(4, b"compiling\n")
    assert list(lines_of(field(3, log))) == ["compiling\n"]


@pytest.mark.parametrize(
    "message", [b"\x0a\x7f", b"\xff" * 11, b"\x0b", b"\x0b\0", b"\x0a", bytes([9 << 3, *[0xFF] * 10, 0x01])]
)
def test_what_is_no_message_is_refused(message: bytes) -> None:
    with pytest.raises(ValueError, match="no message of BuildKit"):
        list(lines_of(message))


@given(st.binary(max_size=200))
def test_no_bytes_do_harm(message: bytes) -> None:
    try:
        assert all(isinstance(line, str) for line in lines_of(message))
    except ValueError as error:
        assert str(error) == "no message of BuildKit"  # noqa: PT017


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "outside").write_text("secret")
    root = tmp_path / "context"
    (root / "src" / "deep").mkdir(parents=True)
    (root / "Dockerfile").write_text("FROM scratch\nCOPY . /\n")
    (root / "src" / "a.py").write_text("print()\n")
    (root / "src" / "deep" / "b.py").write_text("")
    return root


def archive(root: Path) -> dict[str, tarfile.TarInfo]:
    stream = io.BytesIO(b"".join(context_stream(read_context(root, root / "Dockerfile"), "Dockerfile")))
    with tarfile.open(fileobj=stream) as found:
        members = found.getmembers()
    assert len({member.name for member in members}) == len(members), "a name twice"
    return {member.name: member for member in members}


def test_the_dockerfile_comes_first_and_once(root: Path) -> None:
    assert list(archive(root)) == ["Dockerfile", "src", "src/a.py", "src/deep", "src/deep/b.py"]


def test_content_and_modes_are_kept_and_owners_are_not(root: Path) -> None:
    (root / "src" / "a.py").chmod(0o750)
    os.utime(root / "src" / "a.py", (1000, 1000))
    found = archive(root)["src/a.py"]
    assert (found.mode, found.size, found.mtime) == (0o750, 8, 1000)
    assert (archive(root)["src"].size, archive(root)["src"].linkname) == (0, "")
    assert (found.uid, found.gid, found.uname, found.gname) == (0, 0, "", "")


def test_links_are_kept_and_never_followed(root: Path) -> None:
    (root / "out").symlink_to("../outside")
    (root / "folder").symlink_to("..")
    (root / "src" / "same.py").hardlink_to(root / "src" / "a.py")
    found = archive(root)
    assert (found["out"].issym(), found["out"].linkname) == (True, "../outside")
    assert (found["folder"].issym(), found["folder"].linkname) == (True, "..")
    assert (found["src/same.py"].islnk(), found["src/same.py"].linkname) == (True, "src/a.py")
    assert not any(name.startswith("folder/") for name in found)


def test_what_is_ignored_is_not_sent(root: Path) -> None:
    (root / ".dockerignore").write_text("src\n!src/deep/b.py\n.dockerignore\n")
    assert list(archive(root)) == ["Dockerfile", "src/deep/b.py"]


def test_sockets_are_left_out_and_pipes_are_sent_unread(root: Path) -> None:
    os.mkfifo(root / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(root / "socket"))
        found = archive(root)
    assert found["pipe"].isfifo()
    assert "socket" not in found


def test_long_names_and_names_in_no_encoding(root: Path) -> None:
    long, odd = f"{'x' * 150}.py", b"caf\xe9"
    (root / long).write_text("1")
    (root / os.fsdecode(odd)).write_text("2")
    found = archive(root)
    assert long in found
    assert os.fsdecode(odd) in found


def test_a_large_file_takes_little_memory(root: Path) -> None:
    with (root / "model.bin").open("wb") as file:
        file.truncate(200 << 20)
    context = BuildContext(root)
    tracemalloc.start()
    total = sum(map(len, context_stream(context, "Dockerfile")))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert total > 200 << 20
    assert peak < 8 << 20


def test_a_file_that_shrinks_while_it_is_sent_ends_the_build(root: Path) -> None:
    with (root / "zzz").open("wb") as file:
        file.truncate(3 << 20)
    stream = context_stream(BuildContext(root), "Dockerfile")
    for chunk in stream:
        if b"zzz" in chunk[:100]:
            os.truncate(root / "zzz", 10)
            break
    with pytest.raises(OSError, match="zzz changed while it was sent"):
        list(stream)


@pytest.mark.parametrize(("buildkit", "version"), [(True, "2"), (False, "1")])
def test_what_is_printed_before_it_builds(buildkit: bool, version: str) -> None:
    build = EngineBuild(
        api=Engine(""),  # type: ignore[arg-type]
        dockerfile=Path("/my app/Dockerfile"),
        context=Path("/my app"),
        tag="t:1",
        buildkit=buildkit,
        no_cache=buildkit,
    )
    query = f"t=t:1&version={version}&nocache={str(buildkit).lower()}"
    assert str(build) == f"# the engine's API: POST /build?{query}, with '/my app' as a tar stream"


@pytest.mark.parametrize(("buildkit", "version"), [(True, "2"), (False, "1")])
def test_the_request_names_the_builder(buildkit: bool, version: str, tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text("FROM scratch\n")
    asked: list[dict[str, Any]] = []

    def build(**given: Any) -> list[Any]:
        asked.append({**given, "params": api.params})
        return []

    api: Any = SimpleNamespace(build=build, params={"own": "1"})
    EngineBuild(
        api=api,
        dockerfile=tmp_path / "Dockerfile",
        context=tmp_path,
        tag="t:1",
        buildkit=buildkit,
        target="top",
        arguments={"A": "1"},
        no_cache=buildkit,
    ).run(Progress(lambda _: None, lambda _: None, timeout_seconds=10.4))
    (given,) = asked
    assert given.pop("fileobj")
    assert given == {
        "custom_context": True,
        "dockerfile": "Dockerfile",
        "tag": "t:1",
        "target": "top",
        "buildargs": {"A": "1"},
        "nocache": buildkit,
        "rm": True,
        "forcerm": True,
        "timeout": 10,
        "decode": True,
        "params": {"version": version},
    }
    assert api.params == {"own": "1"}


@pytest.mark.parametrize(
    ("answer", "lines"),
    [
        pytest.param({"stream": "Step 1/1 : FROM scratch\n"}, ["Step 1/1 : FROM scratch"], id="the classic builder"),
        pytest.param(
            {"id": "moby.buildkit.trace", "aux": STARTED}, ["[internal] load remote build context"], id="BuildKit"
        ),
        pytest.param({"id": "moby.image.id", "aux": STARTED}, [], id="what else it tells"),
        pytest.param({"id": "moby.buildkit.trace", "aux": "A"}, [], id="no message"),
    ],
)
def test_what_is_shown_of_an_answer(answer: dict[str, Any], lines: list[str]) -> None:
    shown: list[str] = []
    engine_build._take(answer, Progress(shown.append, lambda _: None, timeout_seconds=10))
    assert shown == lines


@pytest.mark.parametrize(("size", "blocks"), [(0, 3), (1, 4), (512, 4), (513, 5)])
def test_an_archive_is_as_long_as_its_blocks(size: int, blocks: int, tmp_path: Path) -> None:
    """A header, the content up to the next block, and two blocks of zeros."""
    (tmp_path / "Dockerfile").write_bytes(b"x" * size)
    assert sum(map(len, context_stream(BuildContext(tmp_path), "Dockerfile"))) == blocks * tarfile.BLOCKSIZE
