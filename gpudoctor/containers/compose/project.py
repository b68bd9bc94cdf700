"""A compose project as it is meant: files merged, variables replaced, paths absolute."""

from collections.abc import Mapping
from dataclasses import field

from gpudoctor.model.containers import GpuRequest
from gpudoctor.model.record import record


@record
class Build:
    """How the image of a service is built.

    context: absolute path of a folder; the address as it is written if it is remote (git, https).
    dockerfile: absolute path; relative to the context if that is remote; "" if it is in the compose file.
    dockerfile_inline: the Dockerfile's text in the compose file; None if it is a file.
    args: build arguments that have a value.
    additional_contexts: name → absolute path, or address ("docker-image://...", "service:NAME", "https://...").
    """

    context: str
    dockerfile: str = "Dockerfile"
    dockerfile_inline: str | None = None
    target: str | None = None
    args: Mapping[str, str] = field(default_factory=dict)
    additional_contexts: Mapping[str, str] = field(default_factory=dict)
    is_remote: bool = False


@record
class Service:
    """One service.

    image: as it is written; None if it is not. Its registry tag, or the tag that its build gets.
    images: the tags that its image can have: `image`, or those that compose gives a build without one (v2, then v1).
    mount_targets: the paths in the container that volumes and tmpfs cover.
    gpu_requests: from `gpus` or `deploy.resources.reservations.devices`.
    environment: NAME → value; None for a name without a value, also in the environment.
    profiles: it runs only with one of them; () always.
    memlock: the soft limit; -1 is unlimited.
    devices: the device files and CDI devices that it gets, by their names on the host.
    """

    name: str
    image: str | None = None
    images: tuple[str, ...] = ()
    build: Build | None = None
    mount_targets: tuple[str, ...] = ()
    environment: Mapping[str, str | None] = field(default_factory=dict)
    profiles: tuple[str, ...] = ()
    gpu_requests: tuple[GpuRequest, ...] = ()
    runtime: str | None = None
    shm_size_bytes: int | None = None
    ipc: str | None = None
    memlock: int | None = None
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

    def wanted_services(self, name: str | None) -> tuple[Service, ...]:
        """Return the service of that name, or without a name those that `up` starts.

        Raises:
            ValueError: there is no service of that name.
        """
        found = tuple(item for item in self.services if (item.name == name if name else self.starts(item)))
        if name and not found:
            names = ", ".join(item.name for item in self.services)
            raise ValueError(f"no service {name!r} in {self.files[0]}: it has {names}")
        return found
