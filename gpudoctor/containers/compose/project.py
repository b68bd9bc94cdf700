"""A compose project as it is meant: files merged, variables replaced, paths absolute."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from gpudoctor.model.record import record


@record
class Build:
    """How the image of a service is built.

    context: absolute path of a folder; the address as it is written where it is remote (git, https).
    dockerfile: absolute path; relative to the context where that is remote; "" where it stands in the compose file.
    dockerfile_inline: the Dockerfile's text in the compose file; None where it is a file.
    args: build arguments that have a value.
    unset_args: names without a value, also in the environment. Compose v2 leaves them out, v1 passes them empty.
    additional_contexts: name → absolute path, or address ("docker-image://...", "service:NAME", "https://...").
    """

    context: str
    dockerfile: str = "Dockerfile"
    dockerfile_inline: str | None = None
    target: str | None = None
    args: Mapping[str, str] = field(default_factory=dict)
    unset_args: tuple[str, ...] = ()
    additional_contexts: Mapping[str, str] = field(default_factory=dict)
    uses_ssh: bool = False
    uses_secrets: bool = False
    is_remote: bool = False


@record
class Mount:
    """Something that lies over a path of the container.

    kind: "bind", "named", "anonymous" or "tmpfs", or another type as it is written ("image", "npipe", "cluster").
    target: in the container.
    source: absolute path of a bind mount; the engine's name of a named volume ("project_data"); "" for the others.
    device: the folder of this machine that a named volume shows (driver_opts `o: bind`), "" for an ordinary volume.
    """

    kind: str
    target: str
    source: str = ""
    read_only: bool = False
    device: str = ""


@record
class DeviceRequest:
    """A request for GPUs, from `gpus` or `deploy.resources.reservations.devices`.

    count: -1 for all; None where it is not written, which means all without `device_ids`.
    """

    driver: str = ""
    count: int | None = None
    device_ids: tuple[str, ...] = ()
    capabilities: tuple[str, ...] = ()


@record
class Service:
    """One service.

    image: as it is written; None where it is not. Its registry tag, or the tag that its build gets.
    images: the tags that its image can have: `image`, or those that compose gives a build without one (v2, then v1).
    environment: NAME → value; None for a name without a value, also in the environment.
    profiles: it runs only with one of them; () always.
    ulimits: name → (soft, hard); -1 is unlimited.
    volumes_from: services and containers whose mounts it has too; they are not in `mounts`.
    """

    name: str
    image: str | None = None
    images: tuple[str, ...] = ()
    build: Build | None = None
    platform: str | None = None
    mounts: tuple[Mount, ...] = ()
    volumes_from: tuple[str, ...] = ()
    environment: Mapping[str, str | None] = field(default_factory=dict)
    profiles: tuple[str, ...] = ()
    device_requests: tuple[DeviceRequest, ...] = ()
    runtime: str | None = None
    shm_size_bytes: int | None = None
    ipc: str | None = None
    ulimits: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    command: tuple[str, ...] | None = None
    privileged: bool = False
    devices: tuple[str, ...] = ()


@record
class Project:
    """A compose project.

    files: absolute, in the order in which they are merged.
    directory: of the project, to which its paths are relative.
    profiles: those that are switched on (COMPOSE_PROFILES); "*" is all.
    read_by: "docker compose", "docker-compose" or "gpudoctor".
    """

    name: str
    directory: str
    files: tuple[str, ...]
    services: tuple[Service, ...] = ()
    profiles: tuple[str, ...] = ()
    read_by: str = "gpudoctor"

    def starts(self, service: Service) -> bool:
        """Return whether `up` starts the service: it has no profile, or one that is switched on."""
        return not service.profiles or "*" in self.profiles or not set(service.profiles).isdisjoint(self.profiles)
