"""Starting a container anew: its own way first."""

import pytest

from gpudoctor.model import ContainerSetup
from gpudoctor.remedies.container_start import recreate_container

RUN = "docker run --rm --gpus all 'my image' nvidia-smi"


@pytest.mark.parametrize(
    ("service", "commands"),
    [
        ("train", ["docker compose up --detach --force-recreate train", RUN]),
        (None, [RUN, "docker compose up --detach --force-recreate SERVICE"]),
    ],
)
def test_a_service_goes_by_compose(service: str | None, commands: list[str]) -> None:
    setup = ContainerSetup(name="c", kind="container", image="my image", service=service)
    remedies = recreate_container(
        setup, wish="Give it", options="--gpus all", service_lines="gpus: all", program="nvidia-smi"
    )
    assert [remedy.commands[0] for remedy in remedies] == commands


def test_an_image_that_is_not_known_and_no_program() -> None:
    first, _ = recreate_container(
        ContainerSetup(name="c", kind="image"), wish="w", options="--ipc=host", service_lines="ipc: host"
    )
    assert first.commands == ("docker run --rm --ipc=host IMAGE",)
