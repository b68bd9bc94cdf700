"""Commands that set and remove variables, quoted for the shell."""

import pytest

from gpudoctor.model import Container, Fix, System
from tests.remedies.made import made_one, pasted_one

LINUX, WINDOWS = System(os="linux"), System(os="windows")


@pytest.mark.parametrize("system", [LINUX, None])
def test_removed(system: System | None) -> None:
    commands = made_one(Fix("unset-variable", name="CUDA_HOME"), system=system).commands
    assert commands == ("unset CUDA_HOME", "printenv CUDA_HOME || echo unset")


def test_a_variable_that_hides_gpus_is_removed_where_it_is_set() -> None:
    hidden = Fix("show-hidden-gpus", name="CUDA_VISIBLE_DEVICES")
    remedy = made_one(hidden, system=LINUX)
    assert ("~/.bashrc" in remedy.summary, remedy.commands[0]) == (True, "unset CUDA_VISIBLE_DEVICES")
    remedy = made_one(hidden, system=LINUX, container=Container(engine="docker", compose=True))
    assert "compose file" in remedy.summary
    assert remedy.commands == ("docker compose up --detach --force-recreate",)


def test_set() -> None:
    remedy = made_one(Fix("set-variable", name="CUDA_HOME", value="/opt/a b"), system=LINUX)
    assert remedy.commands == ("export CUDA_HOME='/opt/a b'", "printenv CUDA_HOME")
    assert remedy.needs == ("restart",)


def test_devices_by_the_numbers_of_nvidia_smi() -> None:
    assert made_one(Fix("show-devices", nvml_indices=(0, 2), summary="s"), system=LINUX).commands == (
        "export CUDA_DEVICE_ORDER=PCI_BUS_ID",
        "export CUDA_VISIBLE_DEVICES=0,2",
        "printenv CUDA_VISIBLE_DEVICES",
    )


def test_power_shell() -> None:
    # in this shell, and in those to come
    removed = "Remove-Item Env:A; [Environment]::SetEnvironmentVariable('A', $null, 'User')"
    assert pasted_one(Fix("unset-variable", name="A"), system=WINDOWS).commands == (removed, "$env:A")
    spaced = pasted_one(Fix("set-variable", name="A", value=r"C:\a b"), system=WINDOWS)
    assert spaced.commands == (r"$env:A = 'C:\a b'", "$env:A")
    assert pasted_one(Fix("show-devices", nvml_indices=(1,), summary="s"), system=WINDOWS).commands == (
        "$env:CUDA_DEVICE_ORDER = 'PCI_BUS_ID'",
        "$env:CUDA_VISIBLE_DEVICES = '1'",
        "$env:CUDA_VISIBLE_DEVICES",
    )


@pytest.mark.parametrize(
    ("fix", "own"),
    [("unset-variable", "Remove A from the environment"), ("set-variable", "Set A to 1")],
)
def test_a_reason_takes_the_place_of_the_plain_summary(fix: str, own: str) -> None:
    value = {"value": "1"} if fix == "set-variable" else {}
    assert made_one(Fix(fix, name="A", **value)).summary == own
    assert made_one(Fix(fix, name="A", summary="why", **value)).summary == "why"
