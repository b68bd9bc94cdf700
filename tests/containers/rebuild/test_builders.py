"""The order in which a rebuild tries, and the commands as a user could type them."""

from collections.abc import Iterable
from pathlib import Path
from typing import cast

import pytest
from docker import APIClient

from gpudoctor.containers.compose.project import Project
from gpudoctor.containers.rebuild.builders import Attempt, ComposeBuilder, DockerBuilder, attempts, path_with_first
from gpudoctor.containers.rebuild.command_line import CommandLine, Compose
from gpudoctor.containers.rebuild.steps import Command
from gpudoctor.containers.requested import Subject

OLD = CommandLine(path="docker", version=(20, 10))
WITH_BUILDX = CommandLine(path="docker", version=(28, 2), has_buildx=True)
SUBJECT = Subject(
    dockerfile=Path("/my project/Dockerfile"),
    context=Path("/my project"),
    image="train",
    target="app",
    build_arguments={"V": "a b"},
)
PRUNE = "docker builder prune --force --filter type=source.local"
BUILD = "docker build --tag T --file '/my project/Dockerfile' --target app --build-arg 'V=a b'"
COPY_AGAIN = Command(arguments=("again",))


def lines(tried: Iterable[Attempt]) -> list[list[str]]:
    return [[str(step) for step in attempt.steps] for attempt in tried]


def docker_builder(docker: CommandLine, *, buildkit: bool) -> DockerBuilder:
    return DockerBuilder(docker=docker, subject=SUBJECT, buildkit=buildkit)


def test_buildkit_first_builds_then_reads_the_context_again_then_leaves_the_cache() -> None:
    builder = docker_builder(WITH_BUILDX, buildkit=True)
    plain = f"DOCKER_BUILDKIT=1 {BUILD} '/my project'"
    assert lines(attempts(builder, "T", stages=("app", "base"))) == [
        [plain],
        [PRUNE, plain],
        [f"DOCKER_BUILDKIT=1 {BUILD} --no-cache-filter=app --no-cache-filter=base '/my project'", plain],
    ]


def test_a_change_that_buildkit_does_not_see_has_it_read_the_context_again_at_once() -> None:
    builder = docker_builder(WITH_BUILDX, buildkit=True)
    first = next(attempts(builder, "T", unseen_changes=True))
    assert str(first.steps[0]) == PRUNE
    assert "kept its size and time" in first.why


@pytest.mark.parametrize(
    ("docker", "stages"),
    [
        pytest.param(OLD, ("app",), id="BuildKit without buildx"),
        pytest.param(WITH_BUILDX, ("0",), id="a stage without a name"),
    ],
)
def test_if_no_stage_can_be_named_the_whole_cache_is_left(docker: CommandLine, stages: tuple[str, ...]) -> None:
    *_, last = attempts(docker_builder(docker, buildkit=True), "T", stages=stages)
    assert "--no-cache" in cast("Command", last.steps[0]).arguments


def test_the_classic_builder_has_one_copy_carried_out_again() -> None:
    builder = docker_builder(OLD, buildkit=False)
    plain = f"DOCKER_BUILDKIT=0 {BUILD.replace('build ', 'build --force-rm ', 1)} '/my project'"
    assert lines(attempts(builder, "T", stages=("app",), copy_again=COPY_AGAIN)) == [
        [plain],
        ["again", plain],
        [
            plain.replace(" '/my project'", "").replace("/my project/D", "/my project/D") + " --no-cache '/my project'",
            plain,
        ],
    ]


def test_every_attempt_ends_in_a_plain_build() -> None:
    for buildkit in (True, False):
        builder = docker_builder(OLD, buildkit=buildkit)
        ends = {str(attempt.steps[-1]) for attempt in attempts(builder, "T", copy_again=COPY_AGAIN)}
        assert ends == {str(builder.build("T"))}


def test_a_service_gets_a_temporary_tag_by_one_more_file() -> None:
    project = Project(name="mine", directory="/p", files=("/p/compose.yaml", "/p/compose.override.yaml"))
    api = APIClient(base_url="unix:///nonexistent", version="1.41")
    builder = ComposeBuilder(
        compose=Compose(words=("docker", "compose")),
        docker=OLD,
        api=api,
        project=project,
        service="web",
        buildkit=True,
    )
    before = "docker compose --project-name mine --project-directory /p -f /p/compose.yaml -f /p/compose.override.yaml"
    environment = "DOCKER_BUILDKIT=1 COMPOSE_DOCKER_CLI_BUILD=1"
    image = '{"services": {"web": {"image": "T"}}}'
    assert str(builder.build("T")) == f"printf %s '{image}' | {environment} {before} -f /dev/stdin build web"
    up = "up --detach --no-deps --no-build --force-recreate web"
    assert str(builder.recreate(start=True)) == f"{environment} {before} {up}"
    assert "up --no-start" in str(builder.recreate(start=False))
    assert str(builder.forget_context()) == PRUNE


@pytest.mark.parametrize(
    ("has_buildx", "is_version_1", "command"),
    [
        pytest.param(True, False, "docker buildx prune", id="version 2"),
        pytest.param(True, True, "docker builder prune", id="version 1, by docker build"),
        pytest.param(False, False, "docker builder prune", id="no buildx"),
    ],
)
def test_the_builder_of_a_service_is_pruned(has_buildx: bool, is_version_1: bool, command: str) -> None:
    builder = ComposeBuilder(
        compose=Compose(words=("docker", "compose"), is_version_1=is_version_1),
        docker=CommandLine(path="docker", version=(28, 2), has_buildx=has_buildx),
        api=APIClient(base_url="unix:///nonexistent", version="1.41"),
        project=Project(name="mine", directory="/p", files=("/p/compose.yaml",)),
        service="web",
        buildkit=True,
    )
    assert str(builder.forget_context()).startswith(f"{command} --force --filter type=source.local")


def test_docker_compose_finds_the_command_line_that_has_the_builder() -> None:
    docker = CommandLine(path="/usr/bin/docker", version=(20, 10))
    assert path_with_first(docker, {"PATH": "/usr/local/bin:/bin"}) == "/usr/bin:/usr/local/bin:/bin"


def test_commands_are_brought_to_the_engine_that_was_looked_at() -> None:
    there = {"DOCKER_HOST": "unix:///run/podman/podman.sock"}
    docker = CommandLine(path="docker", version=(28, 2), environment=there)
    builder = DockerBuilder(docker=docker, subject=SUBJECT, buildkit=False)
    before = "DOCKER_HOST=unix:///run/podman/podman.sock"
    assert str(builder.build("T")).startswith(f"{before} DOCKER_BUILDKIT=0 docker build ")
    assert str(builder.forget_context()).startswith(f"{before} docker builder prune ")
