"""What a compose file says of a service, as the setup of the container that it would start."""

from collections.abc import Mapping
from typing import Any

from gpudoctor.containers.compose.project import Service
from gpudoctor.model.containers import ContainerSetup, GpuRequest
from gpudoctor.parsers.containers import SHM, VARIABLES, device_files, plain, variables_of


def parse_service(service: Service, image: Mapping[str, Any] | None) -> ContainerSetup:
    """Return how a container of the service would be started.

    image: what `inspect` says of its image; None where there is none yet.
    """
    of_image = None if image is None else variables_of((image.get("Config") or {}).get("Env"))
    own = {name: plain(text) for name, text in service.environment.items() if name in VARIABLES and text is not None}
    return ContainerSetup(
        name=plain(service.name),
        kind="service",
        service=plain(service.name),
        image=_text(service.images[0] if service.images else service.image),
        gpu_requests=tuple(
            GpuRequest(
                driver=plain(request.driver),
                count=-1 if request.count is None and not request.device_ids else request.count,
                device_ids=tuple(map(plain, request.device_ids)),
                capabilities=tuple(map(plain, request.capabilities)),
            )
            for request in service.device_requests
        ),
        device_files=device_files(service.devices),
        is_privileged=service.privileged,
        runtime=_text(service.runtime) or "",
        environment={**(of_image or {}), **own},
        image_environment=of_image,
        shm_size_bytes=service.shm_size_bytes,
        ipc=_text(service.ipc),
        has_own_shm=SHM in service.mount_targets,
        memlock_bytes=None if service.memlock is None else max(service.memlock, 0),
    )


def _text(value: str | None) -> str | None:
    return plain(value) if value else None
