"""Settings of a device: the commands for root, and those that verify."""

import pytest

from gpudoctor.conclusions import Facts
from gpudoctor.model import Fix, Snapshot, System
from gpudoctor.remedies.fixes import remedies_of


@pytest.mark.parametrize(
    ("fix", "system", "commands"),
    [
        (
            Fix("set-power-limit", nvml_index=1, watts="350"),
            System(os="linux"),
            ("sudo nvidia-smi -i 1 -pl 350", "nvidia-smi -i 1 -q -d POWER"),
        ),
        (
            Fix("set-power-limit", nvml_index=0, watts="450.5"),
            System(os="windows"),
            ("nvidia-smi -i 0 -pl 450.5", "nvidia-smi -i 0 -q -d POWER"),
        ),
        (
            Fix("turn-on-persistence-mode"),
            System(os="linux", user_is_root=True),
            ("nvidia-smi -pm 1", "nvidia-smi --query-gpu=index,persistence_mode --format=csv"),
        ),
    ],
    ids=repr,
)
def test_commands(fix: Fix, system: System, commands: tuple[str, ...]) -> None:
    (remedy,) = remedies_of((fix,), Facts(Snapshot(system=system)))
    assert (remedy.commands, remedy.needs) == (commands, ("root",))
