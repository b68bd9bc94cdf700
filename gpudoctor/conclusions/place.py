"""Where programs run."""

import re

from gpudoctor.model import Container, System
from gpudoctor.model.conclusions import Place
from gpudoctor.symptoms import Symptoms, of_kind, pasted

_JETSON = re.compile(r"(?i)jetson|orin|xavier|tegra")


def place(system: System | None, container: Container | None = None, symptoms: Symptoms = None) -> Place:
    """Return where programs run, as far as it is known."""
    system = system or System()
    # The words of a report are about a Jetson, unless it names another GPU or Windows too.
    others = any(not _JETSON.search(gpu.name or "") for gpu in system.pci_gpus or ())
    told = bool(of_kind(pasted(symptoms), "place-jetson")) and not others and system.os in (None, "linux")
    return Place(
        in_container=bool(system.container),
        about_container=bool(system.container) or _describes_container(container or Container()),
        in_wsl=bool(system.wsl),
        is_mac=system.os == "darwin",
        is_windows=system.os == "windows",
        is_tegra="tegra" in (system.kernel or "") or told,
    )


def _describes_container(container: Container) -> bool:
    """Return whether a report shows how a container was started."""
    return container.gpus_requested is not None or bool(container.image or container.compose or container.engine)
