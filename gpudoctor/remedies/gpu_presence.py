"""A machine without an NVIDIA GPU, or without its driver."""

from __future__ import annotations

from gpudoctor.model import Device, Place, Remedy, System
from gpudoctor.remedies.containers import start_container_with_gpu
from gpudoctor.remedies.driver_install import install_driver
from gpudoctor.remedies.fixes import fix


@fix
def install_missing_driver(
    *, place: Place, system: System | None, devices: tuple[Device, ...] | None
) -> tuple[Remedy, ...]:
    """Return how to install the driver; of a report also what else may be wrong.

    A pasted message shows neither where it was printed, nor whether there is a GPU.
    """
    install = install_driver(system=system, devices=devices)
    if system is not None and system.container is not None:
        return (install,)
    look = Remedy(
        summary="See whether the machine has an NVIDIA GPU; without one, use a build for the CPU or another machine",
        commands=("wmic path win32_VideoController get name",) if place.is_windows else ("lspci | grep -i nvidia",),
    )
    in_container = start_container_with_gpu(
        system=system, summary="If that was inside a container, start it again with --gpus all"
    )
    return (install, in_container, look)
