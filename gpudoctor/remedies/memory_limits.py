"""A larger /dev/shm, through which programs share memory."""

from gpudoctor.model import Container, Fix, System
from gpudoctor.remedies.fixes import fix


@fix
def enlarge_shared_memory(
    in_container: bool | None, *, container: Container | None, system: System | None
) -> tuple[Fix, ...]:
    """Return how a program gets a larger /dev/shm. in_container: None if that is unknown, for which both are given."""
    engine = (container.engine if container is not None else None) or (system.container if system is not None else None)
    inside: tuple[Fix, ...] = (Fix("mount-memory-in-pod"),)
    if engine != "kubernetes":
        start = Fix("start-container-with-shared-memory", engine="podman" if engine == "podman" else "docker")
        inside = (start, Fix("enlarge-shared-memory-in-compose"))
    if in_container is False:
        inside = ()
    return (*inside, *(() if in_container else (Fix("enlarge-dev-shm"),)), Fix("use-fewer-workers"))
