"""What the engine holds of a compose project: the containers of its services, and the image that each runs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from gpudoctor.containers.compose.project import Project
from gpudoctor.model.record import record

if TYPE_CHECKING:
    from docker import DockerClient

_LABEL = "com.docker.compose"


@record
class ServiceContainer:
    """A container that compose made for a service.

    image: what it was made from, as it was called then; its id where that name means another image by now.
    project: the name it was made under; another than the project's own where `-p` or COMPOSE_PROJECT_NAME said so.
    directory: of the project that made it; "" where that is not noted (compose before 1.25).
    is_one_off: it was made by `compose run`, not by `up`.
    created_at: seconds since 1970.
    """

    id: str
    name: str
    service: str
    project: str
    image: str
    image_id: str
    directory: str = ""
    is_running: bool = False
    is_one_off: bool = False
    created_at: float = 0.0

    def is_from(self, project: Project) -> bool:
        """Return whether it was made in the project's folder; one of another folder may have the same project name."""
        return not self.directory or os.path.realpath(self.directory) == os.path.realpath(project.directory)


def short_name(image: str) -> str:
    """Return the name of an image without what Podman puts before a short one, by which it finds the image too."""
    return image.removeprefix("localhost/").removeprefix("docker.io/").removeprefix("library/")


def service_containers(client: DockerClient, project: Project) -> dict[str, tuple[ServiceContainer, ...]]:
    """Return the containers of each service, those that run first, then the newest.

    They were made under the project's name, or in its folder under another name.
    """
    listing = client.api.containers(all=True, filters={"label": f"{_LABEL}.service"})
    return of_project(listing, project)


def of_project(listing: Iterable[Mapping[str, Any]], project: Project) -> dict[str, tuple[ServiceContainer, ...]]:
    """Return the containers of each service of the project.

    listing: as the engine lists containers. Source: ContainerList of the Docker Engine API.
    """
    containers = [_container(entry) for entry in listing]
    found = [item for item in containers if item.project == project.name or (item.directory and item.is_from(project))]
    found.sort(key=lambda item: (not item.is_running, -item.created_at, item.name))
    return {service.name: tuple(item for item in found if item.service == service.name) for service in project.services}


def _container(entry: Mapping[str, Any]) -> ServiceContainer:
    labels: Mapping[str, str] = entry.get("Labels") or {}
    names = entry.get("Names") or [""]
    return ServiceContainer(
        id=str(entry["Id"]),
        name=str(names[0]).removeprefix("/"),
        service=labels.get(f"{_LABEL}.service", ""),
        project=labels.get(f"{_LABEL}.project", ""),
        image=str(entry.get("Image") or ""),
        image_id=str(entry.get("ImageID") or ""),
        directory=labels.get(f"{_LABEL}.project.working_dir", ""),
        is_running=entry.get("State") == "running",
        is_one_off=labels.get(f"{_LABEL}.oneoff", "").lower() == "true",
        created_at=float(entry.get("Created") or 0),
    )
