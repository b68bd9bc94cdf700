"""Starting the fabric manager in the driver's version."""

import pytest

from gpudoctor.model import Driver, DriverVersion, Place, System
from gpudoctor.remedies.fabric_manager import START, start_fabric_manager

VERSION = DriverVersion.parse("580.95.05")
MISSING = Driver(version=VERSION, fabric_manager="not-installed")
OTHER = Driver(version=VERSION, fabric_manager="running", fabric_manager_version=DriverVersion.parse("580.82.07"))
STOPPED = Driver(version=VERSION, fabric_manager="not-running", fabric_manager_version=VERSION)


@pytest.mark.parametrize(
    ("driver", "distribution", "install"),
    [
        (MISSING, "ubuntu", ["sudo apt-get install 'nvidia-fabricmanager-580=580.95.05-*'"]),
        (MISSING, "rocky", ["sudo dnf install nvidia-fabricmanager-580.95.05"]),
        (MISSING, "debian", []),
        (OTHER, "ubuntu", ["sudo apt-get install 'nvidia-fabricmanager-580=580.95.05-*'"]),
        (STOPPED, "ubuntu", []),
        (None, "ubuntu", []),
    ],
)
def test_what_is_installed_before_the_start(driver: Driver | None, distribution: str, install: list[str]) -> None:
    remedy = start_fabric_manager(place=Place(), driver=driver, system=System(distribution=distribution))
    assert (remedy.commands, remedy.needs) == ((*install, *START), ("root",))


def test_a_container_cannot_start_it() -> None:
    remedy = start_fabric_manager(place=Place(in_container=True), driver=MISSING, system=System(distribution="ubuntu"))
    assert (remedy.commands, remedy.needs) == (START, ("root", "restart"))
