"""The place where programs run: system, container, WSL, virtual machine."""

import re

from gpudoctor.model import Container, System
from gpudoctor.model.conclusions import Place
from gpudoctor.symptoms import Symptoms, of_kind, pasted

_JETSON = re.compile(r"(?i)jetson|orin|xavier|tegra")


def place(system: System = System(), container: Container = Container(), symptoms: Symptoms = None) -> Place:
    """Return the place where programs run, as far as it is known."""
    started = container.gpus_requested is not None or container.image or container.compose or container.engine
    # A report that mentions a Jetson is about one, unless it also names another GPU or Windows.
    others = any(not _JETSON.search(gpu.name or "") for gpu in system.pci_gpus or ())
    is_mentioned = bool(of_kind(pasted(symptoms), "place-jetson")) and not others and system.os in (None, "linux")
    return Place(
        in_container=bool(system.container),
        about_container=bool(system.container or started),
        asks_for_gpu=bool(container.gpus_requested),
        in_wsl=bool(system.wsl),
        is_mac=system.os == "darwin",
        is_windows=system.os == "windows",
        is_tegra="tegra" in (system.kernel or "") or is_mentioned,
    )
