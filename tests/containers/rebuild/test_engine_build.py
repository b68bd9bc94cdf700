"""What the engine answers to a build by its API, without an engine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from gpudoctor.containers.rebuild.engine_build import EngineBuild
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
