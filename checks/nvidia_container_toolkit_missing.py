"""The host's container engine and the GPU."""

from collections.abc import Iterator

from gpudoctor.model import Container, Device, Driver, Finding, Remedy, Severity, System
from gpudoctor.reasoning.symptoms import in_container, nvidia_gpus
from gpudoctor.registry import applies, check, known
from gpudoctor.remedies import install_container_toolkit


@check(family="container")
def nvidia_container_toolkit_missing(
    container: Container,
    system: System | None = None,
    driver: Driver | None = None,
    devices: tuple[Device, ...] | None = None,
) -> Iterator[Finding]:
    """The container engine of this machine cannot hand the GPU to a container.

    Why: without the NVIDIA Container Toolkit, `docker run --gpus all` ends with "could not select device driver" and
    `--runtime=nvidia` with "unknown or invalid runtime name".
    Exception: many machines run containers that need no GPU, so this is advice. A CDI specification does the same as
    the configured runtime; Docker Desktop under WSL brings its own.
    Reference: https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/install-guide.html
    """
    applies(not in_container(system), "containers are started by this one's host")
    applies(system is None or system.os in (None, "linux"), "the toolkit is for Linux")
    applies(system is None or not system.wsl, "Docker Desktop hands the GPU to containers of WSL by itself")
    applies(devices or nvidia_gpus(system) != (), "there is no NVIDIA GPU")
    applies(driver is None or driver.installed is not False, "no driver is installed")
    engine = "docker" if container.docker_installed else "podman" if container.podman_installed else ""
    if not engine:
        known(container.docker_installed, "container.docker_installed")
        applies(engine, "there is no container engine")
    installed = known(container.toolkit_installed, "container.toolkit_installed")
    if container.cdi_devices or (installed and container.nvidia_runtime_configured is not False):
        return
    if installed:
        summary = f"The NVIDIA Container Toolkit is installed, but {engine} is not configured for it"
        remedy = _configure(engine)
        fact = "container.nvidia_runtime_configured"
    else:
        summary = f"{engine.capitalize()} is installed without the NVIDIA Container Toolkit: it starts no GPU container"
        remedy = install_container_toolkit(system=system)
        fact = "container.toolkit_installed"
    yield Finding(
        severity=Severity.INFO,
        summary=summary,
        subject=engine,
        facts=(f"container.{engine}_installed", fact),
        remedies=(remedy,),
    )


def _configure(engine: str) -> Remedy:
    reference = "https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/install-guide.html"
    if engine == "podman":
        return Remedy(
            summary="Write the CDI specification of the GPUs, which podman reads",
            commands=(
                "sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml",
                "podman run --rm --device nvidia.com/gpu=all ubuntu nvidia-smi",
            ),
            needs=("root",),
            reference=reference,
        )
    return Remedy(
        summary="Configure Docker for it and restart Docker (Docker from a snap needs another package: docker-ce)",
        commands=(
            "sudo nvidia-ctk runtime configure --runtime=docker",
            "sudo systemctl restart docker",
            "docker run --rm --gpus all ubuntu nvidia-smi",
        ),
        needs=("root", "restart"),
        reference=reference,
    )
