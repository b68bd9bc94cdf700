"""What the engine has: single images and containers, and the containers of a compose project's services."""

import os
from collections.abc import Iterable, Mapping
from typing import Any

from gpudoctor.containers.compose.project import Project
from gpudoctor.containers.engines import APIClient, DockerClient
from gpudoctor.model.record import record

_LABEL = "com.docker.compose"

Inspected = Mapping[str, Any]
"""As the engine describes it. Source: ImageInspect and ContainerInspect of the Docker Engine API."""


@record
class ServiceContainer:
    """A container that compose made for a service. is_one_off: it was made by `compose run`, not by `up`."""

    id: str
    name: str
    is_one_off: bool = False


def inspect_image(api: APIClient, name: str) -> Inspected | None:
    """Return the image; None if the engine has no image of that name, or rejects the name."""
    from docker.errors import APIError, NullResource

    try:
        about: Inspected = api.inspect_image(name)
    except NullResource:
        return None
    except APIError as error:
        if error.is_client_error():
            return None
        raise
    return about


def inspect_container(api: APIClient, name: str) -> Inspected | None:
    """Return the container with that name or id; None if it does not exist."""
    from docker.errors import NotFound

    try:
        about: Inspected = api.inspect_container(name)
    except NotFound:
        return None
    return about


def short_name(image: str) -> str:
    """Return the name of an image without the prefix that Podman adds to short names. Podman finds it under both."""
    return image.removeprefix("localhost/").removeprefix("docker.io/").removeprefix("library/")


def service_containers(client: DockerClient, project: Project) -> dict[str, tuple[ServiceContainer, ...]]:
    """Return the containers of each service, those that run first, then the newest."""
    return of_project(client.api.containers(all=True, filters={"label": f"{_LABEL}.service"}), project)


def of_project(listing: Iterable[Mapping[str, Any]], project: Project) -> dict[str, tuple[ServiceContainer, ...]]:
    """Return the containers of each service: those made under the project's name, or in its folder under another name.

    listing: as the engine lists containers. Source: ContainerList of the Docker Engine API.
    """
    found: dict[str, list[ServiceContainer]] = {service.name: [] for service in project.services}
    for entry in sorted(listing, key=lambda e: (e.get("State") != "running", -(e.get("Created") or 0), _name_of(e))):
        labels: Mapping[str, str] = entry.get("Labels") or {}
        directory = labels.get(f"{_LABEL}.project.working_dir", "")  # not noted by compose before 1.25
        is_there = bool(directory) and os.path.realpath(directory) == os.path.realpath(project.directory)
        service = labels.get(f"{_LABEL}.service", "")
        if service in found and (is_there or labels.get(f"{_LABEL}.project") == project.name):
            is_one_off = labels.get(f"{_LABEL}.oneoff", "").lower() == "true"
            found[service].append(ServiceContainer(id=str(entry["Id"]), name=_name_of(entry), is_one_off=is_one_off))
    return {service: tuple(containers) for service, containers in found.items()}


def _name_of(entry: Mapping[str, Any]) -> str:
    return str((entry.get("Names") or [""])[0]).removeprefix("/")
