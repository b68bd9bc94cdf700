"""What to do about a faulty GPU: who may reset it, and where."""

import pytest

from gpudoctor.conclusions import Facts
from gpudoctor.model import Fix, Snapshot, System
from gpudoctor.remedies.fixes import remedies_of

LINUX = System(os="linux", wsl=0, container="")
RESET, FIND, REBOOT = (
    "sudo nvidia-smi --gpu-reset -i 0",
    "nvidia-smi -q -d ECC,PAGE_RETIREMENT,ROW_REMAPPER",
    "sudo reboot",
)
DMESG = "sudo dmesg -T | grep -iE 'nvrm|xid|aer'"


@pytest.mark.parametrize(
    ("fix", "system", "commands"),
    [
        pytest.param(Fix("reset-gpu", nvml_index=0), LINUX, [RESET, REBOOT], id="it answers"),
        pytest.param(Fix("reset-gpu", nvml_index=0, lost=True), LINUX, [REBOOT, DMESG], id="it is lost"),
        pytest.param(Fix("reset-gpu"), LINUX, [FIND, REBOOT], id="which one is unknown"),
        pytest.param(Fix("reset-gpu", nvml_index=0), System(os="linux", container="docker"), [None], id="container"),
        pytest.param(Fix("reset-gpu", nvml_index=0), System(os="windows"), ["shutdown /r /t 0"], id="Windows"),
    ],
)
def test_commands(fix: Fix, system: System, commands: list[str | None]) -> None:
    found = remedies_of((fix,), Facts(Snapshot(system=system)))
    assert [next(iter(remedy.commands), None) for remedy in found] == commands
