"""Where programs run."""

from __future__ import annotations

from gpudoctor.model import System
from gpudoctor.model.conclusions import Place


def place(system: System | None) -> Place:
    """Return where programs run, as far as it is known."""
    system = system or System()
    return Place(
        in_container=bool(system.container),
        in_wsl=bool(system.wsl),
        is_mac=system.os == "darwin",
        is_windows=system.os == "windows",
        is_tegra="tegra" in (system.kernel or ""),
    )
