"""Which builder rebuilds an image: the one that made it, by whatever can drive it here."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpudoctor.containers.compose.reader import read_project
from gpudoctor.containers.engines.connection import is_podman
from gpudoctor.containers.engines.objects import inspect_image
from gpudoctor.containers.rebuild.builders import Builder, ComposeBuilder, DockerBuilder, EngineBuilder, path_with_first
from gpudoctor.containers.rebuild.command_line import Choice, CommandLine, choose, find_compose, find_docker
from gpudoctor.containers.requested import Subject
from gpudoctor.errors import UsageError
from gpudoctor.model.record import record

if TYPE_CHECKING:
    from docker import APIClient


@record
class Chosen:
    """The builder, and `docker` for what is done beside it. note: what the user should know, or ""."""

    builder: Builder
    docker: DockerBuilder | None
    subject: Subject
    note: str = ""


def choose_builder(
    api: APIClient, subject: Subject, by_buildkit: bool | None, arguments: Mapping[str, Any], environ: Mapping[str, str]
) -> Chosen:
    """Return who rebuilds the image of `subject`.

    by_buildkit: which builder made the image; None where there is no image.
    arguments: the fields of ImageRequest, and `directory`.

    Raises:
        UsageError: it is a service, and there is no compose command.
    """
    found = find_docker(environ)
    choice = choose(found, buildkit=not is_podman(api) and wants_buildkit(environ, by_buildkit, found))
    if subject.service is not None:
        return _compose(api, subject, choice, arguments, environ)
    docker = _docker(choice, subject)
    builder = docker or EngineBuilder(api=api, subject=subject, buildkit=choice.buildkit)
    return Chosen(builder=builder, docker=docker, subject=subject, note=choice.note)


def _docker(choice: Choice, subject: Subject) -> DockerBuilder | None:
    if choice.docker is None:
        return None
    return DockerBuilder(docker=choice.docker, subject=subject, buildkit=choice.buildkit)


def wants_buildkit(environ: Mapping[str, str], by_buildkit: bool | None, found: tuple[CommandLine, ...]) -> bool:
    """Return whether BuildKit builds: as DOCKER_BUILDKIT says, as the image was built, or as docker does by itself."""
    switch = environ.get("DOCKER_BUILDKIT", "")
    if switch:
        return switch.lower() not in ("0", "f", "false")
    if by_buildkit is not None:
        return by_buildkit
    return bool(found) and found[0].version >= (23,)


def _compose(
    api: APIClient, subject: Subject, choice: Choice, arguments: Mapping[str, Any], environ: Mapping[str, str]
) -> Chosen:
    """Return the builder of a service."""
    compose = find_compose(choice.found, environ)
    if compose is None:
        raise UsageError(
            "a service needs docker compose or docker-compose: sudo apt-get install docker-compose;"
            f" its image alone: {_image_alone(subject)}"
        )
    if compose.is_version_1 and choice.docker is None:
        raise UsageError(
            f"docker-compose builds by docker's command line, but {choice.note};"
            f" its image alone: {_image_alone(subject)}"
        )
    project = read_project(Path(arguments["directory"], arguments.get("compose") or ""), environ)
    service = next(item for item in project.services if item.name == subject.service)
    if inspect_image(api, subject.image or "") is None:
        subject = replace(subject, image=service.images[-1 if compose.is_version_1 else 0])
    note = choice.note if compose.is_version_1 else ""  # version 2 brings BuildKit with it
    builder = ComposeBuilder(
        api=api,
        compose=compose,
        docker=choice.docker,
        project=project,
        service=service.name,
        buildkit=choice.buildkit,
        path=path_with_first(choice.docker, environ) if note and choice.docker is not None else "",
    )
    return Chosen(builder=builder, docker=_docker(choice, subject), subject=subject, note=note)


def _image_alone(subject: Subject) -> str:
    """Return the command that rebuilds the image of a service without compose."""
    options = {"--image": subject.image, "--dockerfile": str(subject.dockerfile), "--context": str(subject.context)}
    words = [word for name, value in options.items() if value for word in (name, value)]
    words += ["--target", subject.target] if subject.target else []
    words += [word for pair in subject.build_arguments.items() for word in ("--build-arg", "=".join(pair))]
    return shlex.join(["gpudoctor", "rebuild", *words])
