"""A Linux driver inside WSL."""

import pytest

from gpudoctor.model import System
from gpudoctor.remedies.driver_install import remove_driver_in_wsl

RESTART = ("wsl.exe --shutdown", "wsl.exe nvidia-smi")
PURGE = (
    "sudo apt-get purge '^nvidia-(driver|utils|dkms|kernel|compute).*' "
    "'^libnvidia-(cfg1|common|compute|decode|encode|extra|fbc1|gl).*' '^libcuda1$' '^cuda-drivers.*'"
)


@pytest.mark.parametrize("distribution", [None, "ubuntu", "debian", "kali", "linuxmint"])
def test_debian_and_its_children(distribution: str | None) -> None:
    remedy = remove_driver_in_wsl(system=System(distribution=distribution))
    assert remedy.commands == (PURGE, "sudo ldconfig", *RESTART)


def test_another_distribution_has_no_command_to_remove_it() -> None:
    assert remove_driver_in_wsl(system=System(distribution="fedora")).commands == RESTART
