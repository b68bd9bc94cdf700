"""Which builder rebuilds an image: the one that made it, by whatever can drive it here."""

import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from gpudoctor.containers.compose.reader import read_project
from gpudoctor.containers.engines import APIClient
from gpudoctor.containers.engines.connection import is_podman
from gpudoctor.containers.engines.objects import inspect_image
from gpudoctor.containers.rebuild.builders import Builder, ComposeBuilder, DockerBuilder, EngineBuilder, path_with_first
from gpudoctor.containers.rebuild.command_line import CommandLine, Compose, find_compose, find_docker
from gpudoctor.containers.requested import Subject
from gpudoctor.errors import UsageError
from gpudoctor.model.record import record


@record
class Chosen:
    """The builder, and `docker` for what is done next to it. note: what the user should know, or ""."""

    builder: Builder
    docker: DockerBuilder | None
    subject: Subject
    note: str = ""


def choose_builder(
    api: APIClient, subject: Subject, by_buildkit: bool | None, arguments: Mapping[str, Any], environ: Mapping[str, str]
) -> Chosen:
    """Return the builder for the image of `subject`.

    by_buildkit: which builder made the image; None if there is no image.
    arguments: the fields of ImageRequest, and `directory`.

    Raises:
        UsageError: it is a service, and there is no compose command.
    """
    found = find_docker(environ)
    buildkit = not is_podman(api) and wants_buildkit(environ, by_buildkit, found)
    program, note = choose(found, buildkit=buildkit)
    if subject.service is None:
        docker = None if program is None else DockerBuilder(docker=program, subject=subject, buildkit=buildkit)
        builder = docker or EngineBuilder(api=api, subject=subject, buildkit=buildkit)
        return Chosen(builder=builder, docker=docker, subject=subject, note=note)
    compose = _compose_of(subject, found, program, note, environ)
    project = read_project(Path(arguments["directory"], arguments.get("compose") or ""), environ)
    service = next(item for item in project.services if item.name == subject.service)
    if inspect_image(api, subject.image or "") is None:
        subject = replace(subject, image=service.images[-1 if compose.is_version_1 else 0])
    note = note if compose.is_version_1 else ""  # version 2 contains BuildKit
    by_compose = ComposeBuilder(
        api=api,
        compose=compose,
        docker=program,
        project=project,
        service=service.name,
        buildkit=buildkit,
        path=path_with_first(program, environ) if note and program is not None else "",
    )
    docker = None if program is None else DockerBuilder(docker=program, subject=subject, buildkit=buildkit)
    return Chosen(builder=by_compose, docker=docker, subject=subject, note=note)


def choose(found: tuple[CommandLine, ...], *, buildkit: bool) -> tuple[CommandLine | None, str]:
    """Return the first command line that has the builder, None for the engine's API, and what the user should know.

    found: in PATH order.
    """
    able = next((item for item in found if item.has_buildkit or not buildkit), None)
    if not found:
        return None, "no docker command found: building with the engine's API"
    if able is found[0]:
        return able, ""
    other = "the engine's API" if able is None else able.path
    return able, f"{found[0].path} cannot use BuildKit (its plugin buildx is missing): building with {other}"


def wants_buildkit(environ: Mapping[str, str], by_buildkit: bool | None, found: tuple[CommandLine, ...]) -> bool:
    """Return whether BuildKit builds: as DOCKER_BUILDKIT says, as the image was built, or as docker does by itself."""
    switch = environ.get("DOCKER_BUILDKIT", "")
    if switch:
        return switch.lower() not in ("0", "f", "false")
    if by_buildkit is not None:
        return by_buildkit
    return bool(found) and found[0].version >= (23,)


def _compose_of(
    subject: Subject, found: tuple[CommandLine, ...], program: CommandLine | None, note: str, environ: Mapping[str, str]
) -> Compose:
    """Return the compose command for a service; raise UsageError if there is none, or none that has the builder."""
    compose = find_compose(found, environ)
    if compose is None:
        reason = "docker compose is not installed: install docker-compose-plugin (Ubuntu: docker-compose-v2)"
    elif compose.is_version_1 and program is None:
        reason = f"docker-compose needs the docker command to build, but {note}"
    else:
        return compose
    raise UsageError(f"{reason}. To build the image without compose: ", _image_alone(subject))


def _image_alone(subject: Subject) -> str:
    """Return the command that rebuilds the image of a service without compose."""
    places = {"--image": subject.image, "--dockerfile": str(subject.dockerfile), "--context": str(subject.context)}
    options = {**places, "--target": subject.target}
    words = [word for name, value in options.items() if value for word in (name, value)]
    words += [word for pair in subject.build_arguments.items() for word in ("--build-arg", "=".join(pair))]
    return shlex.join(["gpudoctor", "rebuild", *words])
