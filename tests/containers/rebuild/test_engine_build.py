"""What the engine answers to a build by its API, without an engine."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudoctor.containers.rebuild.engine_build import EngineBuild, lines_of
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
            "this engine loses a context sent by its API: install docker's plugin buildx",
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


STARTED = (  # as dockerd 20.10 sent it
    "CnwKR3NoYTI1NjoyYmUwNGQxMjdmOGYwNmI5Y2VlYjc5ZmI2NDhlMDg4YzMxNjc3NTk2OTgyM2Q1ZTY1YjUzZTc0OWM2M2MzZDdjGiRbaW50ZXJu"
    "YWxdIGxvYWQgcmVtb3RlIGJ1aWxkIGNvbnRleHQqCwjIw4bYBhDSleVe"
)


def field(number: int, value: bytes) -> bytes:
    return bytes([number << 3 | 2, len(value)]) + value


def test_a_step_that_starts() -> None:
    assert list(lines_of(base64.b64decode(STARTED))) == ["[internal] load remote build context"]


def test_a_step_out_of_the_cache() -> None:
    vertex = field(3, b"[2/3] COPY a b") + bytes([4 << 3, 1])
    assert list(lines_of(field(1, vertex))) == ["[2/3] COPY a b CACHED"]


def test_what_a_step_writes() -> None:
    log = field(1, b"sha256:0") + bytes([3 << 3, 1]) + field(4, b"compiling\n")
    assert list(lines_of(field(3, log))) == ["compiling\n"]


@pytest.mark.parametrize("message", [b"\x0a\x7f", b"\xff" * 11, b"\x0b", b"\x0a"])
def test_what_is_no_message_is_refused(message: bytes) -> None:
    with pytest.raises(ValueError, match="no message of BuildKit"):
        list(lines_of(message))


@given(st.binary(max_size=200))
def test_no_bytes_do_harm(message: bytes) -> None:
    try:
        assert all(isinstance(line, str) for line in lines_of(message))
    except ValueError as error:
        assert str(error) == "no message of BuildKit"  # noqa: PT017
