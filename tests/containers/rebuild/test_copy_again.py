"""The classic builder's cache is renewed by one COPY at a time: what is built for that, on which layer."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from docker.errors import APIError, DockerException

from gpudoctor.containers.builds.context import TooLarge
from gpudoctor.containers.rebuild.copy_again import CopyAgain
from gpudoctor.containers.rebuild.steps import BuildFailed
from gpudoctor.containers.requested import Subject
from tests.containers.fake_engine import SECONDS, FakeEngine

DOCKERFILE = """FROM scratch AS one
COPY a.txt /a.txt
RUN make
FROM scratch AS other
RUN make
FROM one AS two
COPY --from=one a.txt /copied
COPY --chown=1:1 b.txt c.txt /b/
"""
NOP = "/bin/sh -c #(nop) "
ONE = [f"{NOP}COPY file:1 in /a.txt ", "/bin/sh -c make"]
TWO = [*ONE, f"{NOP}COPY file:2 in /copied ", f"{NOP}COPY multi:3 in /b/ "]
TREE = {"/a.txt": "a", "/b/b.txt": "b", "/b/c.txt": "c"}


class Builder:
    """Notes what is built, and puts the image of each stage into the engine."""

    def __init__(self, subject: Subject, engine: FakeEngine, trees: list[dict[str, str]]) -> None:
        self.subject = subject
        self.built: list[tuple[str, ...]] = []
        self._engine = engine
        self._trees = trees

    def build_text(self, tag: str, text: str) -> Any:
        def run(progress: object) -> None:
            self.built.append(("build", text))
            number = sum(words[0] == "build" for words in self.built) - 1
            tree, history = self._trees[number], [ONE, TWO][number]
            layers = [tree, *[{}] * (len(history) - 1)]
            self._engine.replace_image(tag, tree=tree, history=history, layers=layers)

        return SimpleNamespace(run=run)

    def copy_again(self, tag: str, parent: str, text: str) -> Any:
        return SimpleNamespace(run=lambda progress: self.built.append(("copy", parent, text)))


@pytest.fixture
def subject(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Subject:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    root = tmp_path / "project"
    root.mkdir()
    for name in "abc":
        (root / f"{name}.txt").write_text(name)
        os.utime(root / f"{name}.txt", (SECONDS - 100, SECONDS - 100))
    (root / "Dockerfile").write_text(DOCKERFILE)
    return Subject(dockerfile=root / "Dockerfile", context=root, build_arguments={})


def renewed(subject: Subject, *trees: dict[str, str], layer: str = "") -> list[tuple[str, ...]]:
    """Return what is built where the stages hold these files."""
    engine = FakeEngine()
    engine.layer_id = layer
    builder = Builder(subject, engine, list(trees))
    CopyAgain(api=engine, builder=builder, tag="t:1").run(SimpleNamespace(last_lines=()))  # type: ignore[arg-type]
    return builder.built


FIRST = ("build", DOCKERFILE.partition("FROM scratch AS other")[0])
SECOND = ("build", DOCKERFILE)


@pytest.mark.parametrize(
    ("trees", "layer", "copies"),
    [
        pytest.param((TREE, TREE), "sha256:", [], id="nothing is stale"),
        pytest.param(
            ({"/a.txt": "A"}, TREE),
            "sha256:",
            [(1, ("copy", "scratch", 'COPY ["a.txt", "/a.txt"]'))],
            id="the first step",
        ),
        pytest.param(
            (TREE, {**TREE, "/b/c.txt": "C"}),
            "sha256:",
            [(2, ("copy", "sha256:2", 'COPY --chown=1:1 ["b.txt", "c.txt", "/b/"]'))],
            id="a later step, on the layer before it",
        ),
        pytest.param((TREE, {**TREE, "/b/c.txt": "C"}), "<missing>", [], id="the engine has no such layer"),
        pytest.param((TREE, {**TREE, "/a.txt": "A"}), "sha256:", [], id="a COPY of the stage before"),
    ],
)
def test_the_first_stale_copy_of_each_stage(subject: Subject, trees: Any, layer: str, copies: Any) -> None:
    expected = [FIRST, SECOND]
    for place, copy in copies:
        expected.insert(place, copy)
    assert renewed(subject, *trees, layer=layer) == expected


@pytest.mark.parametrize("text", ["a$b.txt", "a\\b.txt"])
def test_what_a_builder_would_read_in_another_way_is_left_alone(subject: Subject, text: str) -> None:
    (subject.context / text).write_text("x")
    written = text.replace("\\", "\\\\").replace("$", "\\$")
    subject.dockerfile.write_text(f"FROM scratch\nCOPY {written} /a.txt\n")
    assert [words[0] for words in renewed(subject, {"/a.txt": "A"})] == ["build"]


@pytest.mark.parametrize("error", [APIError, DockerException, OSError, ValueError, TooLarge])
def test_what_fails_ends_the_build(subject: Subject, error: type[Exception]) -> None:
    class Failing(Builder):
        def build_text(self, tag: str, text: str) -> Any:
            raise error("no space")

    step = CopyAgain(api=FakeEngine(), builder=Failing(subject, FakeEngine(), []), tag="t:1")  # type: ignore[arg-type]
    with pytest.raises(BuildFailed, match="the stages cannot be compared: no space") as caught:
        step.run(SimpleNamespace(last_lines=("so it ends",)))  # type: ignore[arg-type]
    assert caught.value.lines == ("so it ends",)
    assert str(step).startswith("# repeats the stale COPY")
