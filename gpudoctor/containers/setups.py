"""How containers are started: those asked for, or those of the compose project in the working directory."""

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from gpudoctor.containers.builds.dockerfile import parse_dockerfile
from gpudoctor.containers.builds.plan import dockerfile_text
from gpudoctor.containers.builds.stages import lineage, needed_stages, read_stages
from gpudoctor.containers.compose.files import NoComposeFile
from gpudoctor.containers.compose.project import Project, Service
from gpudoctor.containers.compose.reader import read_project
from gpudoctor.containers.engines import DockerClient
from gpudoctor.containers.engines.connection import EngineUnavailable, connect, refusal, seconds_of
from gpudoctor.containers.engines.endpoint import Endpoint, find_endpoint
from gpudoctor.containers.engines.objects import inspect_container, inspect_image, service_containers
from gpudoctor.containers.images.reader import ContainerFiles, created_container
from gpudoctor.containers.packages.installed import find_torch
from gpudoctor.model import Symptom, Torch
from gpudoctor.model.codec import to_json
from gpudoctor.model.containers import Containers, ContainerSetup
from gpudoctor.parsers.containers import (
    SHM,
    device_files,
    parse_container,
    parse_engine,
    parse_image,
    plain,
    variables_of,
)
from gpudoctor.privacy import mask_pasted
from gpudoctor.untrusted import readable_lines

DOCKERFILE = "Dockerfile"
LOG_LINES = 200
LARGEST_LOG_BYTES = 256 << 10
KINDS = ("container-", "shm-", "memlock-", "libcuda-not-found-by-container")
"""Beginnings of the failure messages that are about a container's start or its GPU."""


def look_at_setups(arguments: Mapping[str, Any], environ: Mapping[str, str]) -> dict[str, Any]:
    """Return `containers`, as JSON; `unavailable` with a reason; nothing if nothing is there to look at.

    arguments: the fields of ImageRequest, and `directory`.
    """
    try:
        project = _project(arguments, environ)
        base = _base_of_file(arguments) if project is None else None
    except (ValueError, OSError) as error:
        return {"unavailable": str(error)[:500]}
    named = arguments.get("image") or arguments.get("container")
    if project is None and base is None and not named:
        return {}
    try:
        client = connect(environ, arguments.get("timeout_seconds") or 20.0)
    except EngineUnavailable as reason:
        if named:
            return {"unavailable": str(reason)}
        services = () if project is None else project.wanted_services(arguments.get("service"))
        setups = [parse_service(service, None) for service in services] if project else [_of_dockerfile(base)]
        return {"containers": to_json(Containers(setups=tuple(setups)))}
    from docker.errors import DockerException
    from requests import RequestException

    try:
        return {"containers": to_json(_Look(client, find_endpoint(environ)).at(project, arguments, base))}
    except (DockerException, RequestException) as error:
        return {"unavailable": refusal(error)}
    except ValueError as error:
        return {"unavailable": str(error)}
    finally:
        client.close()


def _project(arguments: Mapping[str, Any], environ: Mapping[str, str]) -> Project | None:
    """Return the compose project; None if there is none, or something else is named."""
    if arguments.get("image") or arguments.get("container") or arguments.get("dockerfile"):
        return None
    try:
        return read_project(Path(arguments["directory"], arguments.get("compose") or ""), environ)
    except NoComposeFile:
        if arguments.get("compose"):
            raise ValueError(f"there is no compose file {arguments['compose']}") from None
        return None


def _of_dockerfile(base: str | None) -> ContainerSetup:
    return ContainerSetup(name=DOCKERFILE, kind="image", base=base)


def parse_service(service: Service, image: Mapping[str, Any] | None) -> ContainerSetup:
    """Return how a container of the service would be started.

    image: what `inspect` says of its image; None if there is none yet.
    """
    of_image = None if image is None else variables_of((image.get("Config") or {}).get("Env"))
    own = variables_of([f"{name}={text}" for name, text in service.environment.items() if text is not None])
    return ContainerSetup(
        name=plain(service.name),
        kind="service",
        service=plain(service.name),
        image=plain((service.images[0] if service.images else service.image) or "") or None,
        base=_base_of_service(service),
        gpu_requests=service.gpu_requests,
        device_files=device_files(service.devices),
        is_privileged=service.privileged,
        runtime=plain(service.runtime or ""),
        environment={**(of_image or {}), **own},
        image_environment=of_image,
        shm_size_bytes=service.shm_size_bytes,
        ipc=plain(service.ipc or "") or None,
        has_own_shm=SHM in service.mount_targets,
        memlock_bytes=None if service.memlock is None else max(service.memlock, 0),
    )


class _Look:
    """Asks one engine."""

    def __init__(self, client: DockerClient, endpoint: Endpoint) -> None:
        self._api = client.api
        self._client = client
        self._torch: dict[str, Torch | None] = {}
        self._engine = parse_engine(
            client.info(), client.version(), address=endpoint.address, has_device_links=_has_device_links()
        )

    def at(self, project: Project | None, arguments: Mapping[str, Any], base: str | None) -> Containers:
        """Return the request."""
        if project is not None:
            setups = tuple(self._services(project, arguments.get("service")))
        elif arguments.get("container"):
            setups = (replace(self._container(arguments["container"]), base=base),)
        elif arguments.get("image"):
            setups = (replace(self._image(arguments["image"]), base=base),)
        else:
            setups = (_of_dockerfile(base),)
        return Containers(setups=setups, engine=self._engine)

    def _services(self, project: Project, wanted: str | None) -> Iterator[ContainerSetup]:
        """Yield each service, and after it its containers."""
        containers = service_containers(self._client, project)
        for service in project.wanted_services(wanted):
            images = (inspect_image(self._api, name) for name in service.images)
            image = next((found for found in images if found is not None), None)
            yield replace(parse_service(service, image), torch=self._torch_of_image(image))
            for container in containers.get(service.name, ()):
                with suppress(ValueError):  # removed in between
                    yield replace(self._container(container.id), service=service.name)

    def _container(self, name: str) -> ContainerSetup:
        about = inspect_container(self._api, name)
        if about is None:
            raise ValueError(f"there is no container {name}")
        image = inspect_image(self._api, str(about.get("Image") or ""))
        setup = parse_container(about, image, self._engine.name)
        torch = self._find_torch(str(about["Id"]), about.get("Config") or {})
        return replace(setup, torch=torch, failures=self._failures(about))

    def _image(self, name: str) -> ContainerSetup:
        about = inspect_image(self._api, name)
        if about is None:
            raise ValueError(f"there is no image {name}: docker pull it, or build it")
        return replace(parse_image(name, about), torch=self._torch_of_image(about))

    def _torch_of_image(self, about: Mapping[str, Any] | None) -> Torch | None:
        from docker.errors import APIError

        if about is None:
            return None
        image = str(about["Id"])
        if image not in self._torch:
            try:
                with created_container(self._api, image) as container:
                    self._torch[image] = self._find_torch(container, about.get("Config") or {})
            except APIError:
                self._torch[image] = None
        return self._torch[image]

    def _find_torch(self, container: str, config: Mapping[str, Any]) -> Torch | None:
        from docker.errors import APIError

        try:
            return find_torch(ContainerFiles(self._api, container), config)
        except (APIError, ValueError):
            return None

    def _failures(self, about: Mapping[str, Any]) -> tuple[Symptom, ...]:
        """Return what the engine said of the last start, and what the container wrote since then."""
        from docker.errors import APIError

        state = about.get("State") or {}
        text = str(state.get("Error") or "")
        started = seconds_of(str(state.get("StartedAt") or ""))
        if started and not text:
            try:
                log = self._api.logs(str(about["Id"]), stream=True, follow=False, tail=LOG_LINES, since=int(started))
                read = bytearray()
                for chunk in log:
                    read += chunk[: LARGEST_LOG_BYTES - len(read)]
                text = read.decode("utf-8", "replace")
            except APIError:  # its logging driver cannot be read
                return ()
        return recognised(text)


def recognised(text: str) -> tuple[Symptom, ...]:
    """Return the failure messages in `text` that are about a container's start or its GPU."""
    if not text.strip():
        return ()
    from gpudoctor.symptoms.matching import recognise

    found = recognise(" ".join(" ".join(readable_lines(mask_pasted(text))).split()), source="container")
    return tuple(symptom for _, symptom in found if symptom.kind.startswith(KINDS))


def _base_of_file(arguments: Mapping[str, Any]) -> str | None:
    """Return the image outside the Dockerfile that is asked for, or that is in the working directory."""
    directory = Path(arguments["directory"])
    path = directory / (arguments.get("dockerfile") or Path(arguments.get("context") or "", DOCKERFILE))
    if not path.is_file() or (arguments.get("container") and not arguments.get("dockerfile")):
        return None
    pairs = (argument.partition("=") for argument in arguments.get("build_arguments") or ())
    return base_image(dockerfile_text(path), arguments.get("target"), {name: value for name, _, value in pairs})


def _base_of_service(service: Service) -> str | None:
    """Return the image outside the Dockerfile of a service; None if that cannot be read."""
    build = service.build
    if build is None or build.is_remote:
        return None
    try:
        text = (
            build.dockerfile_inline if build.dockerfile_inline is not None else dockerfile_text(Path(build.dockerfile))
        )
        return base_image(text, build.target, build.args)
    except (OSError, ValueError):
        return None


def base_image(dockerfile: str, target: str | None, build_arguments: Mapping[str, str]) -> str:
    """Return the image of the FROM that the target goes back to, "scratch" for none.

    Raises:
        ValueError: the Dockerfile is wrong, or has no such target.
    """
    stages = read_stages(parse_dockerfile(dockerfile), build_arguments)
    return plain(lineage(stages, needed_stages(stages, target)[-1])[0].base)


def _has_device_links() -> bool | None:
    """Return whether /dev/char has links to device nodes of the driver, whose major number is 195."""
    try:
        return any(name.startswith("195:") for name in os.listdir("/dev/char"))
    except OSError:
        return None
