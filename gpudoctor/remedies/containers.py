"""GPUs in containers: NVIDIA's toolkit, and how a container is started with a GPU."""

from __future__ import annotations

from gpudoctor.model import Remedy, System
from gpudoctor.remedies.commands import with_sudo

GUIDE = "https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/install-guide.html"
DOCKER = "https://docs.docker.com/engine/containers/gpu/"
PODMAN = "https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/cdi-support.html"
KUBERNETES = "https://kubernetes.io/docs/tasks/manage-gpus/scheduling-gpus/"
REPOSITORY = "https://nvidia.github.io/libnvidia-container"
KEYRING = "/usr/share/keyrings/nvidia-container-toolkit-keyring.gpg"
APT = ("ubuntu", "debian")
DNF = ("fedora", "rhel", "centos", "rocky", "almalinux", "ol", "amzn")


def install_container_toolkit(*, system: System | None) -> Remedy:
    """Return how to install the NVIDIA Container Toolkit and make Docker use it."""
    system = system or System()
    summary = "Install the NVIDIA Container Toolkit and make Docker use it"
    needs = ("root", "restart")
    if system.container:
        return Remedy(summary=f"{summary}, on the host", needs=needs, reference=GUIDE)
    install = _install(system)
    if not install:
        return Remedy(summary=summary, needs=needs, reference=GUIDE)
    configure = ("nvidia-ctk runtime configure --runtime=docker", "systemctl restart docker")
    commands = (*install, *(with_sudo(command, system) for command in configure), _try("--gpus all"))
    return Remedy(summary=summary, commands=commands, needs=needs, reference=GUIDE)


def _install(system: System) -> tuple[str, ...]:
    """Return the commands of NVIDIA's installation guide for the distribution; () for one that it leaves out."""
    gpg, tee = with_sudo("gpg", system), with_sudo("tee", system)
    if system.distribution in APT:
        signed = f"sed 's#deb https://#deb [signed-by={KEYRING}] https://#g'"
        source = f"{REPOSITORY}/stable/deb/nvidia-container-toolkit.list"
        return (
            f"curl -fsSL {REPOSITORY}/gpgkey | {gpg} --dearmor -o {KEYRING}",
            f"curl -fsSL {source} | {signed} | {tee} /etc/apt/sources.list.d/nvidia-container-toolkit.list",
            with_sudo("apt-get update", system),
            with_sudo("apt-get install -y nvidia-container-toolkit", system),
        )
    if system.distribution in DNF:
        source = f"{REPOSITORY}/stable/rpm/nvidia-container-toolkit.repo"
        return (
            f"curl -fsSL {source} | {tee} /etc/yum.repos.d/nvidia-container-toolkit.repo",
            with_sudo("dnf install -y nvidia-container-toolkit", system),
        )
    return ()


def start_container_with_gpu(*, system: System | None, summary: str = "", options: str = "--gpus all") -> Remedy:
    """Return how to start the container again with its GPU.

    The container's own command line is not known: the command shows on any image that the options are right.
    """
    engine = (system.container if system is not None else None) or "docker"
    if engine == "kubernetes":
        text = "Ask for the GPU in the pod's resources: limits: nvidia.com/gpu: 1"
        return Remedy(summary=summary or text, needs=("restart",), reference=KUBERNETES)
    if engine == "podman" and options == "--gpus all":
        options = "--device nvidia.com/gpu=all"
    return Remedy(
        summary=summary or f"Start the container again with {options}, on the host",
        commands=(_try(options, "podman" if engine == "podman" else "docker"),),
        needs=("restart",),
        reference=PODMAN if engine == "podman" else DOCKER,
    )


def _try(options: str, engine: str = "docker") -> str:
    # The runtime puts nvidia-smi into any image. Source: NVIDIA Container Toolkit, "Running a Sample Workload".
    return f"{engine} run --rm {options} ubuntu nvidia-smi"
