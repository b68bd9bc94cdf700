"""The images that are requested or found in the working directory, each with its project."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any

from gpudoctor.containers.builds.context import TooLarge, read_context
from gpudoctor.containers.builds.plan import Plan, read_plan
from gpudoctor.containers.compose.files import NoComposeFile
from gpudoctor.containers.compose.project import Build, Project, Service
from gpudoctor.containers.compose.reader import read_project
from gpudoctor.containers.engines import APIClient, DockerClient
from gpudoctor.containers.engines.connection import EngineUnavailable, connect, reached_by, refusal
from gpudoctor.containers.engines.objects import ServiceContainer, inspect_container, service_containers, short_name
from gpudoctor.containers.images.other_images import repository_of, tags_of_plan
from gpudoctor.containers.project_images import look_at_image
from gpudoctor.model.codec import to_json
from gpudoctor.model.images import ProjectImage
from gpudoctor.model.record import record

DOCKERFILE = "Dockerfile"
MAXIMUM_SHOWN = 5
"""Images that are named if one must be chosen."""


@record
class Subject:
    """One image or container to look at, with the build that should make it.

    dockerfile_inline: its text, if it is in the compose file, which `dockerfile` is then.
    other_contexts: local folders that COPY --from may name.
    """

    dockerfile: Path
    context: Path
    image: str | None = None
    container: str | None = None
    service: str | None = None
    target: str | None = None
    build_arguments: Mapping[str, str]
    dockerfile_inline: str | None = None
    other_contexts: Mapping[str, Path] = field(default_factory=dict)

    def plan(self, target: str | None = None) -> Plan:
        """Return what a build of `target`, or else of the subject's own one, would do.

        Raises:
            ValueError: the Dockerfile or `.dockerignore` is wrong; the message names file and line.
        """
        arguments, text = self.build_arguments, self.dockerfile_inline
        plan = read_plan(self.dockerfile, self.context, target or self.target, arguments, text)
        others = {name: read_context(folder) for name, folder in self.other_contexts.items()}
        return replace(plan, other_contexts=others)


def look_at(arguments: Mapping[str, Any], environ: Mapping[str, str]) -> dict[str, Any]:
    """Return the facts of section images: `images`; `unavailable` with a reason; nothing if nothing is there.

    arguments: the fields of ImageRequest, and `directory`.
    """
    try:
        client = connect(environ, arguments.get("timeout_seconds") or 20.0)
    except EngineUnavailable as reason:
        return {"unavailable": str(reason)}
    from docker.errors import DockerException
    from requests import RequestException

    try:
        subjects = find_subjects(client, arguments, environ)
        reached = reached_by(client.api, environ) if subjects else {}
        images = [replace(look_at_subject(client.api, subject), **reached) for subject in subjects]
        return {"images": to_json(images)} if images else {}
    except (DockerException, RequestException) as error:
        return {"unavailable": refusal(error)}
    except (ValueError, OSError) as error:
        return {"unavailable": str(error)}
    finally:
        client.close()


def find_subjects(
    client: DockerClient, arguments: Mapping[str, Any], environ: Mapping[str, str]
) -> tuple[Subject, ...]:
    """Return what to look at: the image or container named, else what the services of the compose file are built from.

    Raises:
        ValueError: the compose file cannot be read, or has no such service.
    """
    if arguments.get("image") or arguments.get("container"):
        return (_named(arguments),)
    directory = Path(arguments["directory"])
    try:
        project = _project(directory / (arguments.get("compose") or ""), environ)
    except NoComposeFile:
        return _of_dockerfile(client, arguments)
    services = project.wanted_services(arguments.get("service"))
    containers = service_containers(client, project)
    return tuple(
        _of_service(client, project, service, service.build, containers.get(service.name, ()))
        for service in services
        if service.build is not None and not service.build.is_remote
    )


def _project(path: Path, environ: Mapping[str, str]) -> Project:
    """Return the compose project, read here; by the compose command, which takes a second, if that is not enough."""
    try:
        return read_project(path, environ, command_seconds=0)
    except ValueError:
        return read_project(path, environ)


def _named(arguments: Mapping[str, Any]) -> Subject:
    """Return the image or container that is named."""
    directory = Path(arguments["directory"])
    dockerfile = Path(directory, arguments.get("dockerfile") or Path(arguments.get("context") or "", DOCKERFILE))
    pairs = (argument.partition("=") for argument in arguments.get("build_arguments") or ())
    return Subject(
        dockerfile=dockerfile,
        context=Path(directory, arguments.get("context") or dockerfile.parent),
        image=arguments.get("image"),
        container=arguments.get("container"),
        target=arguments.get("target"),
        build_arguments={name: value for name, _, value in pairs},
    )


def _of_dockerfile(client: DockerClient, arguments: Mapping[str, Any]) -> tuple[Subject, ...]:
    """Return the image that was built last from the Dockerfile of the working directory; nothing without a Dockerfile.

    Other projects may have the same Dockerfile: of several images, it is the one with the name of the directory.
    """
    subject = _named(arguments)
    if not subject.dockerfile.is_file():
        return ()
    tags = tags_of_plan(client.api, subject.plan())
    name = subject.context.resolve().name.lower()
    chosen = [tag for tag in tags if repository_of(tag).rpartition("/")[2] == name] or list(tags)
    if len(chosen) != 1:
        found = f"several images match: {', '.join(chosen[:MAXIMUM_SHOWN])}" if chosen else "no local image matches"
        raise ValueError(f"which image is built from {subject.dockerfile}? {found}; name it with --image")
    return (replace(subject, image=chosen[0]),)


def _of_service(
    client: DockerClient, project: Project, service: Service, build: Build, containers: Sequence[ServiceContainer]
) -> Subject:
    """Return what a service runs: the first of its possible images that is there, and its first container."""
    local = {short_name(tag) for image in client.api.images() for tag in image.get("RepoTags") or ()}
    tags = [image if ":" in image.rpartition("/")[2] else f"{image}:latest" for image in service.images]
    up = [container for container in containers if not container.is_one_off]
    return Subject(
        dockerfile=Path(build.dockerfile or project.files[0]),
        context=Path(build.context),
        image=next((tag for tag in tags if short_name(tag) in local), tags[0]),
        container=up[0].name if up else None,
        service=service.name,
        target=build.target,
        build_arguments=build.args,
        dockerfile_inline=build.dockerfile_inline,
        other_contexts={name: Path(place) for name, place in build.additional_contexts.items() if os.path.isabs(place)},
    )


def look_at_subject(api: APIClient, subject: Subject) -> ProjectImage:
    """Return the facts about one subject."""
    about: dict[str, Any] = {
        "dockerfile": str(subject.dockerfile),
        "context": str(subject.context),
        "target": subject.target,
        "service": subject.service,
        "asked_for": subject.service is None,
    }
    image = subject.image or subject.container or ""
    if subject.image is None:
        container = inspect_container(api, subject.container or "")
        if container is None:
            return ProjectImage(image=image, **about, unknown=f"there is no container {subject.container}")
        image = str(container["Config"]["Image"])
    try:
        plan = subject.plan()
    except (ValueError, TooLarge, OSError) as error:
        return ProjectImage(image=image, **about, unknown=str(error)[:500])
    return look_at_image(api, image, plan, subject.container, **about)
