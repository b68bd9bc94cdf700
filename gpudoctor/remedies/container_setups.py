"""Containers seen from the host: another image, and other start options."""

from gpudoctor.model import Container, ContainerSetup, CudaVersion, Fix, Python, Remedy, System
from gpudoctor.remedies.commands import quote_name
from gpudoctor.remedies.fixes import Machine, fix
from gpudoctor.remedies.torch_install import install_torch

RUN = "https://docs.docker.com/reference/cli/docker/container/run/"
COMPOSE = "https://docs.docker.com/reference/compose-file/services/"
CAPABILITIES = "NVIDIA_DRIVER_CAPABILITIES"
TAGS = "https://hub.docker.com/r/nvidia/cuda/tags"


@fix
def use_older_base_image(setup: ContainerSetup, at_most: CudaVersion | None) -> Remedy | Fix:
    """Return how to build or choose an image for a CUDA version that the host's driver supports."""
    if setup.base is None:
        return Fix("use-older-image", at_most=at_most)
    limit = f"CUDA {at_most} or older" if at_most is not None else "an older CUDA"
    service = f" {quote_name(setup.service)}" if setup.service else ""
    command = f"docker compose up --detach --build{service}" if setup.service else "docker build --tag IMAGE ."
    return Remedy(
        summary=f"Change FROM {setup.base} in the Dockerfile to an image for {limit}, and rebuild the image",
        commands=(command,),
        needs=("restart",),
        reference=TAGS,
    )


@fix
def install_torch_in_image(setup: ContainerSetup, *, machine: Machine, system: System) -> Remedy:
    """Return the Dockerfile line that installs PyTorch for CUDA, and how to rebuild the image with it."""
    linux = System(os="linux", machine=system.machine)
    install: Remedy = machine.call(install_torch, python=Python(), system=linux, pytorch=setup.torch)
    lines = [command for command in install.commands if " install " in command]
    service = f" {quote_name(setup.service)}" if setup.service else ""
    build = f"docker compose build --no-cache{service}" if setup.service else "docker build --no-cache --tag IMAGE ."
    start = f"docker compose up --detach --force-recreate{service}" if setup.service else ""
    line = f": RUN {lines[0]}" if lines else ""
    return Remedy(
        summary=f"In the Dockerfile, install a build for CUDA{line}. Check that requirements.txt names no other, and "
        f"rebuild the image. {install.summary}",
        commands=(build, *((start,) if start else ())),
        needs=("restart",),
        reference=install.reference,
    )


@fix
def rebuild_image(*, container: Container) -> tuple[Fix, ...]:
    """Return how to rebuild and start the image: compose first, unless docker run was used."""
    compose, run = Fix("rebuild-service"), Fix("rebuild-without-compose")
    if container.compose is None and container.gpus_requested is not None:
        return (run, compose)
    return (compose, Fix("build-service-with-every-start"), run)


@fix
def give_container_capabilities(setup: ContainerSetup, by_request: bool) -> Fix:
    """Return how to start the container with the driver libraries. by_request: its GPU request names them."""
    return Fix(
        "recreate-container",
        setup=setup,
        wish="Give it compute and utility",
        options=f"--gpus all -e {CAPABILITIES}=compute,utility",
        service_lines=f"environment: {{{CAPABILITIES}: 'compute,utility'}}"
        + (", and capabilities: [gpu] in its device reservation" if by_request else ""),
        program="nvidia-smi",
    )


@fix
def recreate_container(
    setup: ContainerSetup | None = None, *, wish: str, options: str, service_lines: str, program: str = ""
) -> tuple[Remedy, ...]:
    """Return how to recreate the container with other settings: with compose and with `docker run`, its own way first.

    wish: the effect, "Give it the GPU". options: for `docker run`. service_lines: the service's YAML, in one line.
    program: verifies the result inside the image.
    """
    setup = setup or ContainerSetup(name="", kind="container")
    image = quote_name(setup.image or "IMAGE")
    kept = " and the options that it had, because a container keeps its settings until it is recreated"
    run = Remedy(
        summary=f"{wish}: docker run {options}{kept if setup.kind == 'container' else ''}",
        commands=(" ".join(part for part in ("docker run --rm", options, image, program) if part),),
        needs=("restart",),
        reference=RUN,
    )
    service = setup.service
    compose = Remedy(
        summary=f"{wish}, {f'in the service {service}' if service else 'with compose in the service'}: "
        f"{service_lines}; then recreate its container, because docker compose restart keeps the old settings",
        commands=(f"docker compose up --detach --force-recreate {quote_name(service or 'SERVICE')}",),
        needs=("restart",),
        reference=COMPOSE,
    )
    return (compose, run) if service else (run, compose)
