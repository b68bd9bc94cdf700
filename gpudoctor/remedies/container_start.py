"""How a container seen from outside is started with other settings: lines for compose and for `docker run`."""

from __future__ import annotations

import shlex

from gpudoctor.model import ContainerSetup, Remedy
from gpudoctor.remedies.containers import RESERVATION
from gpudoctor.remedies.fixes import fix

RUN = "https://docs.docker.com/reference/cli/docker/container/run/"
COMPOSE = "https://docs.docker.com/reference/compose-file/services/"
CAPABILITIES = "NVIDIA_DRIVER_CAPABILITIES"


@fix
def give_container_gpu(setup: ContainerSetup) -> tuple[Remedy, ...]:
    """Return how to start the container with the GPU."""
    return recreate_container(
        setup, wish="Give it the GPU", options="--gpus all", service_lines=RESERVATION, program="nvidia-smi"
    )


@fix
def give_container_present_gpu(setup: ContainerSetup) -> tuple[Remedy, ...]:
    """Return how to start the container with a GPU that is there instead of one that is not."""
    which = Remedy(summary="See which GPUs the host has; they count from 0", commands=("nvidia-smi --list-gpus",))
    return (which, *give_container_gpu(setup))


@fix
def give_container_shared_memory(setup: ContainerSetup) -> tuple[Remedy, ...]:
    """Return how to start the container with a larger /dev/shm."""
    return recreate_container(
        setup,
        wish="Give it more shared memory, or that of the host (ipc host)",
        options="--shm-size=8g",
        service_lines='shm_size: "8gb" (or ipc: host)',
        program="df -h /dev/shm",
    )


@fix
def give_container_locked_memory(setup: ContainerSetup) -> tuple[Remedy, ...]:
    """Return how to start the container without a limit of the memory that it may lock."""
    return recreate_container(
        setup,
        wish="Let it lock any amount of memory",
        options="--device /dev/infiniband --ulimit memlock=-1",
        service_lines="ulimits: {memlock: -1}",
        program="sh -c 'ulimit -l'",
    )


@fix
def give_container_capabilities(setup: ContainerSetup, by_request: bool) -> tuple[Remedy, ...]:
    """Return how to start the container with the driver's libraries. by_request: its request for the GPU names them."""
    return recreate_container(
        setup,
        wish="Let it have compute and utility",
        options=f"--gpus all -e {CAPABILITIES}=compute,utility",
        service_lines=f"environment: {{{CAPABILITIES}: 'compute,utility'}}"
        + (", and capabilities: [gpu] in its device reservation" if by_request else ""),
        program="nvidia-smi",
    )


@fix
def show_container_its_gpu(setup: ContainerSetup) -> tuple[Remedy, ...]:
    """Return how to start the container without a variable that hides its GPU."""
    return recreate_container(
        setup,
        wish="Remove CUDA_VISIBLE_DEVICES from its environment, or name a GPU",
        options="--gpus all -e CUDA_VISIBLE_DEVICES=0",
        service_lines='environment: {CUDA_VISIBLE_DEVICES: "0"}',
        program="nvidia-smi",
    )


@fix
def restart_container(setup: ContainerSetup) -> Remedy:
    """Return how to restart a container that has lost the GPU."""
    name = shlex.quote(setup.name)
    return Remedy(
        summary="Restart the container: it gets the GPU again",
        commands=(f"docker restart {name}", f"docker exec {name} nvidia-smi"),
        needs=("restart",),
    )


def recreate_container(
    setup: ContainerSetup, *, wish: str, options: str, service_lines: str, program: str = ""
) -> tuple[Remedy, ...]:
    """Return how to recreate the container with other settings: by compose, by `docker run`, its own way first.

    wish: what is done, "Give it the GPU". options: of `docker run`. service_lines: YAML of the service, in one line.
    program: that shows in the image that it worked.
    """
    image = shlex.quote(setup.image or "IMAGE")
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
        commands=(f"docker compose up --detach --force-recreate {shlex.quote(service or 'SERVICE')}",),
        needs=("restart",),
        reference=COMPOSE,
    )
    return (compose, run) if service else (run, compose)
