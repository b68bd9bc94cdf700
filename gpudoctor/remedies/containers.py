"""GPUs in containers: the NVIDIA Container Toolkit, and start options for a GPU."""

import re
from itertools import pairwise

from gpudoctor.data.distributions import distribution_of
from gpudoctor.model import Container, Fix, Place, Remedy, System
from gpudoctor.remedies.commands import quote, quote_name, quote_value
from gpudoctor.remedies.driver_install import update_driver
from gpudoctor.remedies.fixes import fix, remedy_of_row

GUIDE = "https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/install-guide.html"
DOCKER = "https://docs.docker.com/engine/containers/gpu/"
PODMAN = "https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/cdi-support.html"
# Engines with another way to the GPU, and their fix.
APPTAINER = "https://apptainer.org/docs/user/main/gpu.html"
OTHER_ENGINES = {
    "kubernetes": "Ask for the GPU in the pod's resources: limits: nvidia.com/gpu: 1",
    "singularity": "Start the container again with --nv",
}
# Words that a fix copies from a report's command: words that a shell leaves unchanged, and harmless options.
_PLAIN = re.compile(
    r"(?:[\w./]|\$PWD)[\w./:=+-]*|-[ditpv]{1,3}"
    r"|--(?:rm|name|publish|volume|restart|shm-size|ipc|network|detach)(?:=[\w./:+-]+)?",
    re.ASCII,
)

_INSTALL = Fix("install-container-toolkit")
_FAULTS = {
    "engine-too-old": Fix("update-old-docker"),
    "ldconfig": Fix("set-ldconfig-of-toolkit"),
    "driver-in-image": Fix("remove-driver-from-image"),
}


@fix
def install_container_toolkit(*, system: System, container: Container = Container()) -> Remedy | Fix:
    """Return how to install the NVIDIA Container Toolkit and make Docker use it; if it is installed, only that."""
    if system.os in ("windows", "darwin"):
        return Fix("run-container-elsewhere" if system.os == "darwin" else "use-docker-desktop-of-wsl")
    if system.container:
        return remedy_of_row("install-container-toolkit-on-host", system)
    if container.toolkit_installed:
        return Fix("configure-engine")
    packages = distribution_of(system).get("packages", "other" if system.distribution else "unknown")
    return Fix(f"install-container-toolkit-{packages}")


@fix
def configure_engine(*, container: Container, engine: str = "docker") -> Fix:
    """Return how to make an engine use the installed toolkit: Docker's runtime, Podman's CDI file."""
    if engine == "podman":
        return Fix("write-cdi-specification-for-podman")
    return Fix("configure-rootless-docker" if container.rootless else "configure-docker")


@fix
def start_container_with_gpu(
    *,
    system: System,
    summary: str = "",
    options: str = "--gpus all",
    container: Container = Container(),
    place: Place = Place(),
) -> Remedy | Fix:
    """Return how to start the container again with its GPU.

    If its own command line is unknown, the command tests the options with any image.
    """
    engine = engine_of(system, container)
    if engine == "singularity" and container.image:
        command = f"singularity exec --nv {quote_value(container.image)} nvidia-smi"
        return Remedy(
            summary=summary or OTHER_ENGINES[engine], commands=(command,), needs=("restart",), reference=APPTAINER
        )
    if engine in OTHER_ENGINES:
        return Fix(f"start-{engine}-with-gpu", summary=summary or OTHER_ENGINES[engine])
    if place.is_tegra:
        return Fix("start-container-on-jetson")
    if engine == "podman" and options == "--gpus all":
        options = "--device nvidia.com/gpu=all"
    program = "podman" if engine == "podman" else "docker"
    commands, text = [_try(options, program)], f"Start the container again with {options}, on the host"
    if engine == "podman":
        text += "; before Podman 5 --gpus does nothing"
    own = container.arguments or ()
    of_posix = system.os != "windows" or not any(word.startswith("$PWD") for word in own)
    if own and of_posix and not summary and all(map(_PLAIN.fullmatch, own)):
        name = next((value for option, value in pairwise(own) if option == "--name"), "")
        text += f"; {program} rm deletes the old one and everything it stored outside volumes" if name else ""
        commands = [f"{program} rm -f {quote_name(name)}"] if name else []
        commands.append(f"{program} run {options} {' '.join(map(_copied, own))}")
    return Remedy(
        summary=summary or text,
        commands=tuple(commands),
        needs=("restart",),
        reference=PODMAN if engine == "podman" else DOCKER,
    )


def _copied(word: str) -> str:
    return f'"{word}"' if word.startswith("$PWD") else quote(word)


@fix
def start_container_in_its_way_with_gpu(*, container: Container) -> tuple[Fix, ...]:
    """Return how to start the container with its GPU, in the way it was first started."""
    run, toolkit = Fix("start-container-with-gpu"), Fix("install-container-toolkit")
    compose = Fix("reserve-gpu-in-compose")
    if container.engine == "kubernetes":
        return (run, Fix("let-kubernetes-use-gpu"))
    if container.engine == "singularity":
        return (run,)
    if container.compose:
        return (compose, run, toolkit)
    if container.engine in (None, "docker"):
        return (run, toolkit, compose)
    return (run, toolkit)


@fix
def start_container_with_capabilities(granted: str, *, container: Container) -> tuple[Fix, ...]:
    """Return how to start the container with driver libraries. granted: "compute,utility"."""
    run = Fix(
        "start-container-with-gpu",
        summary=f"Start the container with the capabilities {granted.replace(',', ' and ')}: "
        f"NVIDIA_DRIVER_CAPABILITIES={granted} and NVIDIA_VISIBLE_DEVICES=all",
        options=f"--gpus all -e NVIDIA_DRIVER_CAPABILITIES={granted}",
    )
    compose = Fix("grant-capabilities-in-compose", granted=granted)
    return (compose, run) if container.compose else (run, compose)


def _of_snap(container: Container) -> Fix:
    """Return the fix for a snap of Docker. One that nobody saw is looked for, not removed."""
    return Fix("replace-docker-snap" if container.docker_snap else "look-for-docker-snap")


@fix
def let_engine_use_gpu(fault: str = "not-installed", *, container: Container, system: System) -> tuple[Fix, ...]:
    """Return how to set up the NVIDIA Container Toolkit, depending on how the engine was installed.

    fault: "not-installed", "misconfigured", "refused" (SELinux), "engine-too-old", "ldconfig", "driver-in-image".
    """
    install, configure, snap = _INSTALL, Fix("configure-engine"), _of_snap(container)
    if container.docker_snap:
        return (snap, install)
    if container.docker_desktop and system.os in (None, "linux"):
        return (Fix("leave-docker-desktop"), install)
    if fault == "refused":
        return (Fix("try-container-without-selinux-labels"), configure, install)
    if fault in _FAULTS:
        return (_FAULTS[fault], install)
    is_there = container.rootless or container.toolkit_installed
    if is_there:
        return (configure, snap)
    if fault == "misconfigured":
        return (configure, install, snap)
    return (install, configure, snap)


@fix
def let_engine_see_driver(
    driver_works: bool = False, *, container: Container, system: System
) -> tuple[Remedy | Fix, ...]:
    """Return the fix if the container runtime finds no driver. driver_works: on the host it works."""
    desktop, look = Fix("leave-docker-desktop"), Fix("see-driver-and-docker-of-host")
    if system.os == "windows":
        return (_INSTALL,)
    if container.docker_snap or container.docker_desktop:
        return (_of_snap(container) if container.docker_snap else desktop, _INSTALL)
    if driver_works:
        return (desktop, look, _INSTALL)
    return (look, update_driver(system=system, needed=None), desktop, _INSTALL)


@fix
def write_cdi_specification(*, container: Container) -> tuple[Fix, ...]:
    """Return how to make a CDI specification of the GPUs: Podman reads it, unless the engine is Docker."""
    podman = Fix("write-cdi-specification-for-podman")
    if container.engine == "podman":
        return (podman,)
    return (_INSTALL, podman) if container.engine == "docker" else (podman, _INSTALL)


def engine_of(system: System, container: Container) -> str:
    """Return the container's engine; "docker" if unknown."""
    return container.engine or system.container or "docker"


def _try(options: str, engine: str = "docker") -> str:
    # The runtime adds nvidia-smi to any image. Source: NVIDIA Container Toolkit, "Running a Sample Workload".
    return f"{engine} run --rm {options} ubuntu nvidia-smi"
