"""Containers seen from outside: another image, and other settings at their start."""

import pytest

from gpudoctor.model import (
    Container,
    ContainerSetup,
    CudaVersion,
    Driver,
    DriverVersion,
    Fix,
    PackageVersion,
    System,
    Torch,
)
from tests.remedies.made import made, made_one

CUDA_12_2 = CudaVersion(12, 2)
SERVICE = ContainerSetup(name="train", kind="service", service="my-train", base="nvidia/cuda:13.0.1-base")
IMAGE = ContainerSetup(name="train", kind="image", image="train:1")


@pytest.mark.parametrize(
    ("setup", "at_most", "words", "commands"),
    [
        pytest.param(
            SERVICE,
            CUDA_12_2,
            "Change FROM nvidia/cuda:13.0.1-base in the Dockerfile to an image for CUDA 12.2 or older",
            ("docker compose up --detach --build my-train",),
            id="FROM of a service",
        ),
        pytest.param(
            ContainerSetup(name="train", kind="image", base="nvidia/cuda:13.0.1-base"),
            None,
            "to an image for an older CUDA",
            ("docker build --tag IMAGE .",),
            id="FROM, driver unknown",
        ),
        pytest.param(
            IMAGE,
            CUDA_12_2,
            "another tag of the same image, for a CUDA that the host's driver supports: CUDA 12.2 or older",
            (),
            id="no Dockerfile",
        ),
    ],
)
def test_an_image_for_an_older_cuda(
    setup: ContainerSetup, at_most: CudaVersion | None, words: str, commands: tuple[str, ...]
) -> None:
    remedy = made_one(Fix("use-older-base-image", setup=setup, at_most=at_most))
    assert words in remedy.summary
    assert remedy.commands == commands


@pytest.mark.parametrize(
    ("service", "commands"),
    [
        (None, ("docker build --no-cache --tag IMAGE .",)),
        ("train", ("docker compose build --no-cache train", "docker compose up --detach --force-recreate train")),
    ],
)
def test_pytorch_in_an_image(service: str | None, commands: tuple[str, ...]) -> None:
    torch = Torch(installed=True, version=PackageVersion("2.9.0+cpu"), build="cpu")
    setup = ContainerSetup(name="train", kind="image", service=service, torch=torch)
    driver = Driver(version=DriverVersion((580, 65, 6)), cuda_version=CudaVersion(13, 0))
    # The commands are for Linux in the image, whatever the host runs.
    remedy = made_one(
        Fix("install-torch-in-image", setup=setup),
        system=System(os="windows", machine="x86_64"),
        driver=driver,
        devices=None,
    )
    assert ": RUN python -m pip install " in remedy.summary
    assert "torch==2.9.0+cu" in remedy.summary
    assert remedy.commands == commands


def test_a_rebuild_goes_by_compose_unless_docker_run_was_used() -> None:
    compose = "docker compose build --no-cache SERVICE"
    run = "docker build --no-cache --pull --tag IMAGE ."
    for container, expected in (
        (None, [compose, "docker compose up --build --detach", run]),
        (Container(compose=True, gpus_requested=True), [compose, "docker compose up --build --detach", run]),
        (Container(gpus_requested=False), [run, compose]),
    ):
        assert [remedy.commands[0] for remedy in made(Fix("rebuild-image"), container=container)] == expected


RUN = "docker run --rm --gpus all my/image:1 nvidia-smi"


@pytest.mark.parametrize(
    ("service", "commands"),
    [
        ("train", ["docker compose up --detach --force-recreate train", RUN]),
        (None, [RUN, "docker compose up --detach --force-recreate SERVICE"]),
    ],
)
def test_a_service_goes_by_compose(service: str | None, commands: list[str]) -> None:
    setup = ContainerSetup(name="c", kind="container", image="my/image:1", service=service)
    arguments = {"wish": "Give it", "options": "--gpus all", "service_lines": "gpus: all", "program": "nvidia-smi"}
    remedies = made(Fix("recreate-container", setup=setup, **arguments))
    assert [remedy.commands[0] for remedy in remedies] == commands


def test_an_image_that_is_not_known_and_no_program() -> None:
    setup = ContainerSetup(name="c", kind="image")
    fix = Fix("recreate-container", setup=setup, wish="w", options="--ipc=host", service_lines="ipc: host")
    first, _ = made(fix)
    assert first.commands == ("docker run --rm --ipc=host IMAGE",)
