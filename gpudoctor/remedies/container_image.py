"""Other images: for an older CUDA, or with a PyTorch that is built for CUDA."""

import shlex

from gpudoctor.model import Container, ContainerSetup, CudaVersion, Device, Driver, Fix, Remedy, System
from gpudoctor.remedies.fixes import fix
from gpudoctor.remedies.torch_install import install_torch

TAGS = "https://hub.docker.com/r/nvidia/cuda/tags"


@fix
def use_older_image(at_most: CudaVersion | None) -> Remedy:
    """Return how to choose an image for the CUDA that the host's driver supports. at_most: None if it is unknown."""
    limit = f"CUDA {at_most} or older" if at_most is not None else "an older CUDA, which the host's driver supports"
    return Remedy(summary=f"Use an image for {limit}: another tag of the same image", reference=TAGS)


@fix
def use_older_base_image(setup: ContainerSetup, at_most: CudaVersion | None) -> Remedy:
    """Return how the image of a container is built, or chosen, for the CUDA that the host's driver supports."""
    if setup.base is None:
        return use_older_image(at_most)
    limit = f"CUDA {at_most} or older" if at_most is not None else "an older CUDA"
    service = f" {shlex.quote(setup.service)}" if setup.service else ""
    command = f"docker compose up --detach --build{service}" if setup.service else "docker build --tag IMAGE ."
    return Remedy(
        summary=f"Change FROM {setup.base} in the Dockerfile to an image for {limit}, and rebuild the image",
        commands=(command,),
        needs=("restart",),
        reference=TAGS,
    )


@fix
def install_torch_in_image(
    setup: ContainerSetup,
    *,
    system: System | None,
    driver: Driver | None,
    devices: tuple[Device, ...] | None,
) -> Remedy:
    """Return the line of the Dockerfile that installs a PyTorch for CUDA, and how to rebuild the image with it."""
    linux = System(os="linux", machine=system.machine if system is not None else None)
    install = install_torch(python=None, system=linux, driver=driver, devices=devices, pytorch=setup.torch)
    lines = [command for command in install.commands if " install " in command]
    service = f" {shlex.quote(setup.service)}" if setup.service else ""
    build = f"docker compose build --no-cache{service}" if setup.service else "docker build --no-cache --tag IMAGE ."
    start = f"docker compose up --detach --force-recreate{service}" if setup.service else ""
    line = f": RUN {lines[0]}" if lines else ""
    return Remedy(
        summary=f"In the Dockerfile, install a build for CUDA{line}; let requirements.txt name no other, and rebuild "
        f"the image. {install.summary}",
        commands=(build, *((start,) if start else ())),
        needs=("restart",),
        reference=install.reference,
    )


@fix
def rebuild_image(*, container: Container | None) -> tuple[Fix, ...]:
    """Return how to rebuild the image and start it: with compose first, unless docker run was used."""
    compose, run = Fix("rebuild-service"), Fix("rebuild-without-compose")
    if container is not None and container.compose is None and container.gpus_requested is not None:
        return (run, compose)
    return (compose, Fix("build-service-with-every-start"), run)
