"""Where programs run."""

from gpudoctor.model import Container, System
from gpudoctor.model.conclusions import Place


def place(system: System | None, container: Container | None = None) -> Place:
    """Return where programs run, as far as it is known."""
    system = system or System()
    return Place(
        in_container=bool(system.container),
        about_container=bool(system.container) or _describes_container(container or Container()),
        in_wsl=bool(system.wsl),
        is_mac=system.os == "darwin",
        is_windows=system.os == "windows",
        is_tegra="tegra" in (system.kernel or ""),
    )


def _describes_container(container: Container) -> bool:
    """Return whether a report shows how a container was started."""
    return container.gpus_requested is not None or bool(container.image or container.compose or container.engine)
