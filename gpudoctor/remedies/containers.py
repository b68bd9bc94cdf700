"""GPUs in containers: NVIDIA's toolkit, and how a container is started with a GPU."""

from __future__ import annotations

from gpudoctor.model import Container, Remedy, System
from gpudoctor.remedies.commands import with_sudo
from gpudoctor.remedies.fixes import fix

GUIDE = "https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/install-guide.html"
DOCKER = "https://docs.docker.com/engine/containers/gpu/"
COMPOSE = "https://docs.docker.com/compose/how-tos/gpu-support/"
DESKTOP = "https://docs.docker.com/desktop/features/gpu/"
PODMAN = "https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/cdi-support.html"
KUBERNETES = "https://kubernetes.io/docs/tasks/manage-gpus/scheduling-gpus/"
SINGULARITY = "https://apptainer.org/docs/user/main/gpu.html"
REPOSITORY = "https://nvidia.github.io/libnvidia-container"
KEYRING = "/usr/share/keyrings/nvidia-container-toolkit-keyring.gpg"
APT = ("ubuntu", "debian", "pop", "linuxmint", "zorin", "kali", "elementary", "raspbian")
DNF = ("fedora", "rhel", "centos", "rocky", "almalinux", "ol", "amzn")
ZYPPER = ("opensuse-leap", "opensuse-tumbleweed", "sles", "sled")
PACMAN = ("arch", "manjaro", "endeavouros", "cachyos")
RESERVATION = "deploy: {resources: {reservations: {devices: [{driver: nvidia, count: all, capabilities: [gpu]}]}}}"


@fix
def install_container_toolkit(*, system: System | None) -> Remedy:
    """Return how to install the NVIDIA Container Toolkit and make Docker use it."""
    system = system or System()
    summary = "Install the NVIDIA Container Toolkit and make Docker use it"
    needs = ("root", "restart")
    if system.os in ("windows", "darwin"):
        return _desktop(system)
    if system.container:
        return Remedy(summary=f"{summary}, on the host", needs=needs, reference=GUIDE)
    if system.distribution == "nixos":
        option = "hardware.nvidia-container-toolkit.enable = true"
        return Remedy(summary=f"{summary}: {option} in the configuration", needs=needs, reference=GUIDE)
    configure = tuple(
        with_sudo(command, system)
        for command in ("nvidia-ctk runtime configure --runtime=docker", "systemctl restart docker")
    )
    install = _install(system)
    if system.distribution and not install:
        return Remedy(summary=summary, needs=needs, reference=GUIDE)
    if not install:
        # The distribution is not known: its package manager is not either, the rest is the same everywhere.
        summary += (
            ": from NVIDIA's repository with apt install nvidia-container-toolkit (dnf install, zypper install), "
            "then configure it"
        )
    return Remedy(summary=summary, commands=(*install, *configure, _try("--gpus all")), needs=needs, reference=GUIDE)


def _desktop(system: System) -> Remedy:
    """Return how Docker Desktop gets the GPU, which has the toolkit itself."""
    if system.os == "darwin":
        return Remedy(
            summary="Run the container on a machine with an NVIDIA GPU: Docker on macOS cannot use a GPU",
            reference=DESKTOP,
        )
    return Remedy(
        summary="Let Docker Desktop use its WSL 2 engine, which gives containers the GPU through the Windows driver",
        commands=("wsl --update", _try("--gpus all")),
        needs=("restart",),
        reference=DESKTOP,
    )


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
    source = f"{REPOSITORY}/stable/rpm/nvidia-container-toolkit.repo"
    if system.distribution in DNF:
        return (
            f"curl -fsSL {source} | {tee} /etc/yum.repos.d/nvidia-container-toolkit.repo",
            with_sudo("dnf install -y nvidia-container-toolkit", system),
        )
    if system.distribution in ZYPPER:
        return (
            with_sudo(f"zypper addrepo {source}", system),
            with_sudo("zypper --gpg-auto-import-keys install -y nvidia-container-toolkit", system),
        )
    if system.distribution in PACMAN:
        return (with_sudo("pacman -S --noconfirm nvidia-container-toolkit", system),)
    return ()


@fix
def configure_engine(*, system: System | None, container: Container | None, engine: str = "docker") -> Remedy:
    """Return how to make an engine use the toolkit that is installed: the runtime of docker, the CDI file of podman."""
    if engine == "podman":
        return Remedy(
            summary="Write the CDI specification of the GPUs, which podman reads",
            commands=(
                "sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml",
                "nvidia-ctk cdi list",
                "podman run --rm --device nvidia.com/gpu=all ubuntu nvidia-smi",
            ),
            needs=("root",),
            reference=PODMAN,
        )
    if container is not None and container.rootless:
        return Remedy(
            summary="Configure rootless Docker for the toolkit: its own daemon.json, and no cgroups",
            commands=(
                "nvidia-ctk runtime configure --runtime=docker --config=$HOME/.config/docker/daemon.json",
                "sudo nvidia-ctk config --set nvidia-container-cli.no-cgroups --in-place",
                "systemctl --user restart docker",
                _try("--gpus all"),
            ),
            needs=("root", "restart"),
            reference=GUIDE,
        )
    return Remedy(
        summary="Configure Docker for it and restart Docker (Docker from a snap needs another package: docker-ce)",
        commands=(
            *(
                with_sudo(command, system)
                for command in ("nvidia-ctk runtime configure --runtime=docker", "systemctl restart docker")
            ),
            _try("--gpus all"),
        ),
        needs=("root", "restart"),
        reference=GUIDE,
    )


@fix
def replace_docker_snap(*, system: System | None) -> Remedy:
    """Return how to get a Docker that sees the driver: the snap is shut off from the host's toolkit."""
    return Remedy(
        summary="Replace Docker's snap, which does not see the host's NVIDIA Container Toolkit, by docker-ce "
        "from https://docs.docker.com/engine/install/ (or update the snap: newer ones bring their own toolkit)",
        commands=(
            with_sudo("snap remove docker", system),
            with_sudo("nvidia-ctk runtime configure --runtime=docker", system),
            with_sudo("systemctl restart docker", system),
            _try("--gpus all"),
        ),
        needs=("root", "restart"),
        reference=GUIDE,
    )


@fix
def leave_docker_desktop() -> Remedy:
    """Return how to use the engine of a Linux host instead of Docker Desktop, whose virtual machine has no GPU."""
    return Remedy(
        summary="Use Docker Engine (docker-ce) of the host: Docker Desktop for Linux runs in a virtual machine "
        "without the GPU",
        commands=("docker context use default", _try("--gpus all")),
        needs=("restart",),
        reference=DESKTOP,
    )


@fix
def start_container_with_gpu(
    *, system: System | None, summary: str = "", options: str = "--gpus all", container: Container | None = None
) -> Remedy:
    """Return how to start the container again with its GPU.

    The container's own command line is not known: the command shows on any image that the options are right.
    """
    engine = engine_of(system, container)
    if engine == "kubernetes":
        text = "Ask for the GPU in the pod's resources: limits: nvidia.com/gpu: 1"
        return Remedy(summary=summary or text, needs=("restart",), reference=KUBERNETES)
    if engine == "singularity":
        return Remedy(
            summary=summary or "Start the container again with --nv",
            commands=("singularity exec --nv docker://ubuntu nvidia-smi",),
            needs=("restart",),
            reference=SINGULARITY,
        )
    if engine == "podman" and options == "--gpus all":
        options = "--device nvidia.com/gpu=all"
    if not summary and engine == "podman":
        summary = f"Start the container again with {options}, on the host; before Podman 5 --gpus does nothing"
    return Remedy(
        summary=summary or f"Start the container again with {options}, on the host",
        commands=(_try(options, "podman" if engine == "podman" else "docker"),),
        needs=("restart",),
        reference=PODMAN if engine == "podman" else DOCKER,
    )


@fix
def reserve_gpu_in_compose(*, capabilities: bool = False) -> Remedy:
    """Return how a service of a compose file gets the GPU. capabilities: with the driver's libraries named too."""
    also = (
        " and environment: {NVIDIA_VISIBLE_DEVICES: all, NVIDIA_DRIVER_CAPABILITIES: 'compute,utility'}"
        if capabilities
        else ""
    )
    return Remedy(
        summary=f"With compose, reserve the GPU for the service, {RESERVATION}{also}, and recreate its container",
        commands=("docker compose up --detach --force-recreate",),
        needs=("restart",),
        reference=COMPOSE,
    )


@fix
def start_container_in_its_way_with_gpu(*, system: System | None, container: Container | None) -> tuple[Remedy, ...]:
    """Return how to start the container with its GPU, in the way in which it was started first."""
    run = start_container_with_gpu(system=system, container=container)
    compose = reserve_gpu_in_compose(capabilities=True)
    toolkit = install_container_toolkit(system=system)
    if container is not None and container.compose:
        return (compose, run, toolkit)
    if container is None or container.engine in (None, "docker"):
        return (run, toolkit, compose)
    return (run, toolkit)


@fix
def start_container_with_capabilities(
    granted: str, *, system: System | None, container: Container | None
) -> tuple[Remedy, ...]:
    """Return how to start the container with libraries of the driver. granted: "compute,utility"."""
    run = start_container_with_gpu(
        system=system,
        container=container,
        summary=f"Start the container with the capabilities {granted.replace(',', ' and ')}: "
        f"NVIDIA_DRIVER_CAPABILITIES={granted} and NVIDIA_VISIBLE_DEVICES=all",
        options=f"--gpus all -e NVIDIA_DRIVER_CAPABILITIES={granted}",
    )
    compose = reserve_gpu_in_compose(capabilities=True)
    return (compose, run) if container is not None and container.compose else (run, compose)


@fix
def write_gpus_as_two_words() -> Remedy:
    """Return how the option --gpus is written."""
    return Remedy(
        summary="Write the option and its value as two words of their own, --gpus all, in a list of arguments "
        '"--gpus", "all" (runArgs of devcontainer.json); several devices need quotes within quotes',
        commands=(
            "docker run --rm --gpus all ubuntu nvidia-smi",
            "docker run --rm --gpus '\"device=0,1\"' ubuntu nvidia-smi",
        ),
        reference=DOCKER,
    )


@fix
def check_host_for_nv() -> Remedy:
    """Return what helps if Singularity finds no driver on the host."""
    return Remedy(
        summary="Check whether nvidia-smi works on the host itself: a login node of a cluster has no GPU (start the "
        "container in a job that asks for one), a Jetson needs its folders bound by hand",
        commands=("nvidia-smi", "srun --gres=gpu:1 singularity exec --nv IMAGE nvidia-smi"),
        reference=SINGULARITY,
    )


def engine_of(system: System | None, container: Container | None) -> str:
    """Return the engine of the container, "docker" if nothing shows it."""
    named = container.engine if container is not None else None
    return named or (system.container if system is not None else None) or "docker"


def _try(options: str, engine: str = "docker") -> str:
    # The runtime puts nvidia-smi into any image. Source: NVIDIA Container Toolkit, "Running a Sample Workload".
    return f"{engine} run --rm {options} ubuntu nvidia-smi"
