"""PyTorch on Apple's MPS: the commands of each fix."""

import pytest

from gpudoctor.conclusions import Facts
from gpudoctor.model import Fix, Python, Snapshot
from gpudoctor.remedies.fixes import remedies_of

MACHINE = Facts(Snapshot(python=Python(executable="/opt/venv/bin/python")))


@pytest.mark.parametrize(
    ("fix", "command"),
    [
        (Fix("check-mps", summary="x"), "/opt/venv/bin/python -c"),
        (Fix("use-mps"), "torch.backends.mps.is_available()"),
        (Fix("install-arm64-torch"), "/opt/venv/bin/python -m pip install --force-reinstall torch"),
        (Fix("update-macos"), "sw_vers"),
        (Fix("upgrade-torch", summary="x"), "-m pip install --upgrade torch torchvision torchaudio"),
    ],
    ids=repr,
)
def test_commands(fix: Fix, command: str) -> None:
    (remedy,) = remedies_of((fix,), MACHINE)
    assert any(command in line for line in remedy.commands)
