"""Commands that set and remove variables, quoted for the shell."""

import pytest

from gpudoctor.model import System
from gpudoctor.remedies.variables import set_variable, show_devices, unset_variable

LINUX, WINDOWS = System(os="linux"), System(os="windows")


@pytest.mark.parametrize("system", [LINUX, None])
def test_removed(system: System | None) -> None:
    commands = unset_variable(system=system, name="CUDA_HOME").commands
    assert commands == ("unset CUDA_HOME", "printenv CUDA_HOME || echo unset")


def test_set() -> None:
    remedy = set_variable(system=LINUX, name="CUDA_HOME", value="/opt/a b")
    assert remedy.commands == ("export CUDA_HOME='/opt/a b'", "printenv CUDA_HOME")
    assert remedy.needs == ("restart",)


def test_devices_by_the_numbers_of_nvidia_smi() -> None:
    assert show_devices(system=LINUX, nvml_indices=(0, 2), summary="s").commands == (
        "export CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=0,2",
        "printenv CUDA_VISIBLE_DEVICES",
    )


def test_power_shell() -> None:
    assert unset_variable(system=WINDOWS, name="A").commands == ("Remove-Item Env:A", "Test-Path Env:A")
    assert set_variable(system=WINDOWS, name="A", value="it's").commands == ("$env:A = 'it''s'", "$env:A")
    assert show_devices(system=WINDOWS, nvml_indices=(1,), summary="s").commands == (
        "$env:CUDA_DEVICE_ORDER = 'PCI_BUS_ID'",
        "$env:CUDA_VISIBLE_DEVICES = '1'",
        "$env:CUDA_VISIBLE_DEVICES",
    )
