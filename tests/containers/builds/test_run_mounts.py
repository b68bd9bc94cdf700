"""What a RUN sees of the build context."""

from __future__ import annotations

import pytest

from gpudoctor.containers.builds.dockerfile import parse_dockerfile
from gpudoctor.containers.builds.run_mounts import context_mounts


@pytest.mark.parametrize(
    ("flags", "mounts"),
    [
        ("--mount=type=bind,source=a,target=/b", [("a", "/b")]),
        ("--mount=src=a,dst=/b", [("a", "/b")]),
        ("--mount=type=bind,destination=/b", [(None, "/b")]),
        ("--mount=type=bind,from=other,source=a,target=/b", []),
        ("--mount=type=cache,target=/root/.cache", []),
        ("--mount=type=bind,source=a,target=/b --mount=type=secret,id=x --mount=source=c,target=/d",
         [("a", "/b"), ("c", "/d")]),
        ("--network=none", []),
    ],
)  # fmt: skip
def test_mounts_of_the_context(flags: str, mounts: list[tuple[str | None, str]]) -> None:
    instruction = parse_dockerfile(f"FROM scratch\nRUN {flags} make\n").instructions[-1]
    assert [(mount.get("source"), mount["target"]) for mount in context_mounts(instruction)] == mounts
