"""What a build would do, as one Dockerfile says it."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpudoctor.containers.builds.plan import Plan, dockerfile_text, read_plan
from gpudoctor.containers.builds.stages import Base

DOCKERFILE = """\
ARG BASE=python:3.12
ARG OTHER=debian:13
FROM ${OTHER} AS tools
FROM $BASE AS first
COPY one /1
FROM scratch AS unused
FROM first AS second
COPY --from=tools /bin/x /x
COPY two /2
FROM second AS third
COPY three /3
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "Dockerfile").write_text(DOCKERFILE)
    for name in ("one", "two", "three", ".env"):
        (tmp_path / name).write_text(name)
    (tmp_path / "Dockerfile.dockerignore").write_text("one\n")
    return tmp_path


def plan(folder: Path, target: str | None = "second", text: str | None = None, **arguments: str) -> Plan:
    return read_plan(folder / "Dockerfile", folder, target, arguments, text)


def test_the_stages_up_to_the_target(folder: Path) -> None:
    found = plan(folder)
    assert (found.target.index, found.root.index, found.base) == (3, 1, "python:3.12")
    assert [step.instruction.text for step in found.steps if step.copy] == [
        "COPY one /1",
        "COPY --from=tools /bin/x /x",
        "COPY two /2",
    ]
    assert [stage.index for stage in found.needed] == [0, 1, 3]
    assert found.outside_bases == {"python:3.12", "debian:13"}
    assert found.changed_at == (folder / "Dockerfile").stat().st_mtime
    assert [copy.copy.destination for copy in found.copies] == ["/1", "/x", "/2"]
    assert plan(folder, None).target.index == 4
    assert plan(folder, "unused").outside_bases == set()


@pytest.mark.parametrize(
    ("text", "arguments", "is_given"),
    [
        ("ARG BASE=a\nFROM $BASE", {"BASE": "b"}, True),
        ("ARG BASE=a\nFROM ${BASE:-c}", {"BASE": "b"}, True),
        ("ARG BASE=a\nFROM $BASE", {"OTHER": "b"}, False),
        ("ARG BASE=a\nFROM $BASE", {}, False),
        ("ARG BASE=a\nFROM a\nFROM $BASE", {"BASE": "b", "OTHER": "c"}, True),
        ("ARG BASE=a\nFROM a AS x\nFROM x", {"BASE": "b"}, False),
    ],
)
def test_a_base_that_an_argument_names(folder: Path, text: str, arguments: dict[str, str], is_given: bool) -> None:
    found = plan(folder, None, text, **arguments)
    assert (found.is_base_given, found.changed_at) == (is_given, 0.0)


def test_what_older_builders_make_of_it(folder: Path) -> None:
    found = plan(folder)
    assert found.context.is_own_ignore
    assert found.context.ignore.ignores("one")
    assert not found.by_classic_builder.context.ignore.ignores("one")  # it looks for a .dockerignore alone
    assert found.by_old_buildkit.context.ignore.ignores("one")


def test_bases_with_variables_and_triggers(folder: Path) -> None:
    found = plan(folder)
    assert found.on({"python:3.12": Base()}) is found
    moved = found.on({"python:3.12": Base(triggers=("COPY three /t",)), "debian:13": Base()})
    assert (moved.target.index, moved.target) == (3, moved.stages[3])
    assert [copy.copy.destination for copy in moved.copies] == ["/t", "/1", "/x", "/2"]


def test_what_cannot_be_read_names_the_file(folder: Path) -> None:
    for text, target in (("COPY", None), (DOCKERFILE, "none")):
        with pytest.raises(ValueError, match=rf"^{folder}/Dockerfile: "):
            plan(folder, target, text)
    (folder / "Dockerfile").write_bytes(b"#\xff\n")
    assert dockerfile_text(folder / "Dockerfile") == "#\udcff\n"
