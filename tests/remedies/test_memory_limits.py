"""More shared memory, by what started the container."""

import pytest

from gpudoctor.model import System
from gpudoctor.remedies.memory_limits import enlarge_shared_memory


@pytest.mark.parametrize(
    ("engine", "commands"),
    [
        ("kubernetes", ("kubectl exec POD -- df -h /dev/shm",)),
        ("podman", ("podman run --gpus all --shm-size=8g IMAGE", "podman run --gpus all --ipc=host IMAGE")),
        ("docker", ("docker run --gpus all --shm-size=8g IMAGE", "docker run --gpus all --ipc=host IMAGE")),
    ],
)
def test_a_container(engine: str, commands: tuple[str, ...]) -> None:
    first, *_ = enlarge_shared_memory(True, system=System(container=engine), container=None)
    assert first.commands == commands
