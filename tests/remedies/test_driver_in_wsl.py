"""A Linux driver inside WSL."""

import pytest

from gpudoctor.model import Fix, System
from tests.remedies.made import made_one

RESTART = ("wsl.exe --shutdown", "wsl.exe nvidia-smi")
PURGE = (  # apt purges nothing at all if one of its own patterns has no package
    "dpkg --get-selections | cut -f1 | grep -E '^(nvidia-(driver|utils|dkms|kernel|compute)|"
    "libnvidia-(cfg1|common|compute|decode|encode|extra|fbc1|gl)|libcuda1(:|$)|cuda-drivers)' "
    "| xargs -r sudo apt-get purge -y"
)


@pytest.mark.parametrize("distribution", [None, "ubuntu", "debian", "kali", "linuxmint"])
def test_debian_and_its_children(distribution: str | None) -> None:
    remedy = made_one(Fix("remove-driver-in-wsl"), system=System(distribution=distribution))
    assert remedy.commands == (PURGE, "sudo ldconfig", RESTART[0])  # what comes after it would not run


def test_another_distribution_has_no_command_to_remove_it() -> None:
    remedy = made_one(Fix("remove-driver-in-wsl"), system=System(distribution="fedora"))
    assert remedy.commands == RESTART
