"""A driver that is missing, or seems so in a report."""

import pytest

from gpudoctor.model import Place, System
from gpudoctor.remedies.gpu_presence import install_missing_driver


def test_on_the_machine_itself_only_the_driver_is_installed() -> None:
    system = System(os="linux", distribution="ubuntu", container="")
    (install,) = install_missing_driver(place=Place(), system=system, devices=None)
    assert "sudo ubuntu-drivers install" in install.commands


@pytest.mark.parametrize(
    ("place", "look"),
    [
        (Place(), "lspci | grep -i nvidia"),
        (Place(is_windows=True), "wmic path win32_VideoController get name"),
    ],
)
def test_a_report_may_be_of_a_container_or_of_a_machine_without_a_gpu(place: Place, look: str) -> None:
    _, in_container, looking = install_missing_driver(place=place, system=None, devices=None)
    assert any("--gpus all" in command for command in in_container.commands)
    assert looking.commands == (look,)
