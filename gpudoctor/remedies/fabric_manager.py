"""The fabric manager of NVSwitch machines."""

from __future__ import annotations

from gpudoctor.model import Driver, Place, Remedy, System
from gpudoctor.remedies.driver_install import FABRIC_MANAGER
from gpudoctor.remedies.fixes import fix

START = ("sudo systemctl enable --now nvidia-fabricmanager", "nvidia-smi -q | grep -A 2 Fabric")
WITH_DNF = ("rhel", "rocky", "almalinux", "ol", "fedora", "amzn")


@fix
def start_fabric_manager(*, place: Place, driver: Driver | None, system: System | None) -> Remedy:
    """Return how to start the fabric manager, installed in the driver's version if it is not."""
    if place.in_container:
        return Remedy(
            summary="On the container's host start the fabric manager, then restart the container",
            commands=START,
            needs=("root", "restart"),
            reference=FABRIC_MANAGER,
        )
    summary = "Start the fabric manager, of the driver's version; on B200 and newer with its subnet manager (nvlsm) too"
    commands: tuple[str, ...] = ()
    version = driver.version if driver is not None else None
    missing = driver is not None and (driver.fabric_manager == "not-installed" or driver.has_other_fabric_manager)
    if missing and version is not None:
        summary = f"Install the fabric manager of the driver's version {version} and start it"
        distribution = system.distribution if system is not None else None
        if distribution == "ubuntu":
            commands = (f"sudo apt-get install 'nvidia-fabricmanager-{version.parts[0]}={version}-*'",)
        elif distribution in WITH_DNF:
            commands = (f"sudo dnf install nvidia-fabricmanager-{version}",)
    return Remedy(summary=summary, commands=(*commands, *START), needs=("root",), reference=FABRIC_MANAGER)
