"""What a report tells of how a container was started."""

from __future__ import annotations

from gpudoctor.model import Container, System


def told_of_container(system: System | None, container: Container | None) -> bool:
    """Return whether the facts are known to be of a container: by signs inside it, or by how it was started."""
    if system is not None and system.container:
        return True
    return container is not None and container.is_described


def gpus_left_out(container: Container | None) -> str | None:
    """Return the fact that shows a start without the GPU, None where none does."""
    return "container.gpus_requested" if container is not None and container.gpus_requested is False else None
