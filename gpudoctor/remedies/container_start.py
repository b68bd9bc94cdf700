"""How a container seen from outside is started with other settings: lines for compose and for `docker run`."""

import shlex

from gpudoctor.model import ContainerSetup, Fix, Remedy
from gpudoctor.remedies.fixes import fix

RUN = "https://docs.docker.com/reference/cli/docker/container/run/"
COMPOSE = "https://docs.docker.com/reference/compose-file/services/"
CAPABILITIES = "NVIDIA_DRIVER_CAPABILITIES"


@fix
def give_container_capabilities(setup: ContainerSetup, by_request: bool) -> Fix:
    """Return how to start the container with the driver's libraries. by_request: its request for the GPU names them."""
    return Fix(
        "recreate-container",
        setup=setup,
        wish="Let it have compute and utility",
        options=f"--gpus all -e {CAPABILITIES}=compute,utility",
        service_lines=f"environment: {{{CAPABILITIES}: 'compute,utility'}}"
        + (", and capabilities: [gpu] in its device reservation" if by_request else ""),
        program="nvidia-smi",
    )


@fix
def recreate_container(
    setup: ContainerSetup | None = None, *, wish: str, options: str, service_lines: str, program: str = ""
) -> tuple[Remedy, ...]:
    """Return how to recreate the container with other settings: by compose, by `docker run`, its own way first.

    wish: what is done, "Give it the GPU". options: of `docker run`. service_lines: YAML of the service, in one line.
    program: that shows in the image that it worked.
    """
    setup = setup or ContainerSetup(name="", kind="container")
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
