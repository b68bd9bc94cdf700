"""More shared memory, by what started the container."""

import pytest

from gpudoctor.model import Fix, System
from tests.remedies.made import made


@pytest.mark.parametrize(
    ("engine", "commands"),
    [
        ("kubernetes", ("kubectl exec POD -- df -h /dev/shm",)),
        ("podman", ("podman run --gpus all --shm-size=8g IMAGE", "podman run --gpus all --ipc=host IMAGE")),
        ("docker", ("docker run --gpus all --shm-size=8g IMAGE", "docker run --gpus all --ipc=host IMAGE")),
    ],
)
def test_a_container(engine: str, commands: tuple[str, ...]) -> None:
    first, *_ = made(Fix("enlarge-shared-memory", in_container=True), system=System(container=engine))
    assert first.commands == commands


@pytest.mark.parametrize(("in_container", "remounts"), [(True, False), (False, True), (None, True)])
def test_dev_shm_is_mounted_again_outside_a_container(in_container: bool | None, remounts: bool) -> None:
    remedies = made(Fix("enlarge-shared-memory", in_container=in_container))
    assert any("sudo mount -o remount,size=8G /dev/shm" in remedy.commands for remedy in remedies) is remounts
