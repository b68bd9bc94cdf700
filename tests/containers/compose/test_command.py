"""The projects of compose_cases.py, read here and by the compose command line of this machine."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

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


def test_what_the_command_says_stands_beside_what_is_not_understood_here(tmp_path: Path) -> None:
    """Only a new docker compose reads `include`, and it says why it does not."""
    program = tmp_path / "bin" / "docker"
    program.parent.mkdir()
    program.write_text(
        "#!/bin/sh\necho 'one line' >&2\necho 'required variable MODE is missing a value' >&2\nexit 15\n"
    )
    program.chmod(0o755)
    (tmp_path / "compose.yaml").write_text("include: [other.yaml]\nservices: {}\n")
    told = r"`include` is not understood here.*\(docker compose: required variable MODE is missing a value\)$"
    with pytest.raises(ValueError, match=told):
        read_project(tmp_path, {"PATH": str(program.parent)})
