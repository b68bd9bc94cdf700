"""The projects of compose_cases.py, read here and by the compose command line of this machine."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpudoctor.containers.compose import command as command_module
from gpudoctor.containers.compose.command import NotRead, answer_of, commands
from gpudoctor.containers.compose.files import ComposeFiles, find_files
from gpudoctor.containers.compose.project import Build, Project, Service
from gpudoctor.containers.compose.reader import read_project
from tests.containers.compose.cases import CASES, Case

SECONDS = 60.0


def comparable(project: Project) -> Project:
    """Return the project without what the readers may order or say in their own way."""
    return replace(
        project, read_by="", services=tuple(sorted(map(_comparable, project.services), key=lambda s: s.name))
    )


def _comparable(service: Service) -> Service:
    return replace(
        service,
        build=None if service.build is None else _without_empty_args(service.build),
        mount_targets=tuple(sorted(service.mount_targets)),
        gpu_requests=tuple(sorted(service.gpu_requests, key=repr)),
        profiles=tuple(sorted(service.profiles)),
        devices=tuple(sorted(service.devices)),
    )


def _without_empty_args(build: Build) -> Build:
    """Return the build without arguments that have no value: version 1 makes them empty, version 2 leaves them out."""
    return replace(build, args={name: value for name, value in build.args.items() if value})


@pytest.fixture
def environ() -> Mapping[str, str]:
    if shutil.which("docker-compose") is None and shutil.which("docker") is None:
        pytest.skip("there is no compose command line here")
    return {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}


@pytest.mark.parametrize("case", [pytest.param(case, id=name) for name, case in CASES.items()])
def test_both_read_the_same(case: Case, environ: Mapping[str, str], tmp_path: Path) -> None:
    folder = tmp_path / "My_Project.1"
    folder.mkdir()
    case.write(folder)
    theirs = read_project(folder, {**environ, **case.environ}, SECONDS)
    if theirs.read_by == "gpudoctor":
        pytest.skip("the compose command line of this machine does not work")
    ours = read_project(folder, {**environ, **case.environ}, 0)
    assert ours.read_by == "gpudoctor"
    assert comparable(ours) == comparable(theirs)


def test_what_the_command_says_stands_next_to_what_is_not_understood_here(tmp_path: Path) -> None:
    """Only a new docker compose reads `include`, and it says why it does not."""
    program = tmp_path / "bin" / "docker"
    program.parent.mkdir()
    program.write_text(
        "#!/bin/sh\necho 'one line' >&2\necho 'required variable MODE is missing a value' >&2\nexit 15\n"
    )
    program.chmod(0o755)
    (tmp_path / "compose.yaml").write_text("include: [other.yaml]\nservices: {}\n")
    told = r"`include` needs `docker compose`.*\(docker compose: required variable MODE is missing a value\)$"
    with pytest.raises(ValueError, match=told):
        read_project(tmp_path, {"PATH": str(program.parent)})


def programs(folder: Path, **scripts: str) -> ComposeFiles:
    """Return the files of a project whose PATH has these programs only."""
    (folder / "bin").mkdir()
    for name, script in scripts.items():
        program = folder / "bin" / name.replace("_", "-")
        program.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        program.chmod(0o755)
    (folder / "compose.yaml").write_text("services: {}\n", encoding="utf-8")
    return find_files(folder, {"PATH": str(folder / "bin")})


@pytest.mark.parametrize(
    ("installed", "expected"),
    [
        ((), []),
        (("docker",), [("docker compose", ["config", "--format", "json"])]),
        (("docker_compose",), [("docker-compose", ["config"])]),
        (
            ("docker", "docker_compose"),
            [("docker compose", ["config", "--format", "json"]), ("docker-compose", ["config"])],
        ),
    ],
)
def test_the_commands_that_are_installed(installed: tuple[str, ...], expected: list[Any], tmp_path: Path) -> None:
    files = programs(tmp_path, **dict.fromkeys(installed, "true"))
    found = [(name, command[command.index("config") :]) for name, command in commands(files)]
    assert found == expected
    for _, command in commands(files):
        place = command.index("--project-directory")
        assert command[place : place + 4] == [
            "--project-directory",
            str(tmp_path),
            "-f",
            str(tmp_path / "compose.yaml"),
        ]


@pytest.mark.parametrize(
    ("script", "answer"),
    [("printf answer", b"answer"), ("pwd >&2; printf ''", b""), ('printf "$COMPOSE_PROFILES"', b"*")],
)
def test_an_answer(script: str, answer: bytes, tmp_path: Path) -> None:
    files = programs(tmp_path, docker=script)
    assert answer_of([str(tmp_path / "bin/docker")], files, SECONDS) == answer


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("echo first >&2; echo ' last ' >&2; echo >&2; exit 1", "last"),
        ("exit 3", ""),
        (f"printf '%0{600}d end' 0 >&2; exit 1", f"{'0' * 496} end"),
        ("exec sleep 60", ""),
    ],
)
def test_what_a_command_says_that_has_not_read_the_project(script: str, told: str, tmp_path: Path) -> None:
    files = programs(tmp_path, docker=f"PATH=/usr/bin:/bin\n{script}")
    with pytest.raises(NotRead) as raised:
        answer_of([str(tmp_path / "bin/docker")], files, 1.0 if "sleep" in script else SECONDS)
    assert str(raised.value) == told


def test_a_command_that_cannot_be_started_or_writes_too_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = programs(tmp_path, docker="printf 123456")
    monkeypatch.setattr(command_module, "MAXIMUM_BYTES", 6)
    assert answer_of([str(tmp_path / "bin/docker")], files, SECONDS) == b"123456"
    monkeypatch.setattr(command_module, "MAXIMUM_BYTES", 5)
    with pytest.raises(NotRead):
        answer_of([str(tmp_path / "bin/docker")], files, SECONDS)
    with pytest.raises(NotRead):
        answer_of([str(tmp_path / "bin/gone")], files, SECONDS)
