"""The container engines on this machine, whether they know the NVIDIA runtime, and the signs of them, read from files.

Signs show a program that it runs in a container, and which engine runs it.
"""

import re
from collections.abc import Mapping
from typing import Any

from gpudoctor.model import Container
from gpudoctor.parsers.containers import mentions_nvidia_runtime, names_nvidia_runtime, parse_cdi_devices
from gpudoctor.probes.reading import (
    Facts,
    file_text,
    file_texts,
    found,
    is_linux,
    known_paths,
    listed,
    unreadable,
    value,
)

DOCKER_CONFIGS = ("/etc/docker/daemon.json", "/var/snap/docker/current/config/daemon.json")
OTHER_CONFIGS = known_paths("other_engine_configs")
CDI_SPECIFICATIONS = ("/etc/cdi/*", "/var/run/cdi/*")
COMMANDS = ("docker", "podman", "nvidia-ctk", "nvidia-container-cli", "nvidia-container-runtime")
CONTAINER_SIGNS = {
    "files": ["/run/systemd/container", "/proc/1/cgroup", "/proc/1/comm"],
    "listings": ["/.dockerenv", "/run/.containerenv", "/var/run/secrets/kubernetes.io", "/.singularity.d", "/dev/lxd"],
    "values": [*known_paths("container_values")],
}
_ENGINES = {"docker": "docker", "libpod": "podman", "lxc": "lxc", "kubepods": "kubernetes", "containerd": "containerd"}
_FIRST_PROCESSES = {"systemd", "init", "openrc-init", "runit", "s6-svscan", "dinit"}


def reading_list(home: str) -> Mapping[str, Any]:
    """Return what to read for the section. A daemon without root is configured in its user's folder, below `home`."""
    rootless = [f"{home}/.config/docker/daemon.json"] if home else []
    return {
        "files": [*DOCKER_CONFIGS, *rootless, *OTHER_CONFIGS, *CDI_SPECIFICATIONS],
        "which": list(COMMANDS),
        "values": ["platform"],
    }


def parse_container(facts: Facts) -> Container:
    """Return the section."""
    paths = [found(facts, command) for command in COMMANDS]
    docker, podman, *toolkit = (None if path is None else bool(path) for path in paths)
    return Container(
        docker_installed=docker,
        podman_installed=podman,
        toolkit_installed=None if None in toolkit else any(toolkit),
        nvidia_runtime_configured=_runtime_configured(facts) if is_linux(facts) else None,
        cdi_devices=_cdi_devices(facts) if is_linux(facts) else None,
    )


def _runtime_configured(facts: Facts) -> bool | None:
    """Return whether a configuration names the NVIDIA runtime; unknown if one could not be read, or is elsewhere."""
    answers = [_names_runtime(path, text) for path, text in file_texts(facts, "*").items() if "/cdi/" not in path]
    if True in answers:
        return True
    docker = facts.get("which", {}).get("docker") or {}
    in_its_own_machine = "docker-desktop" in docker.get("target", "")  # where its daemon.json is not read
    return None if None in answers or in_its_own_machine or unreadable(facts, "*") else False


def _names_runtime(path: str, text: str) -> bool | None:
    if not path.endswith("/daemon.json"):
        return mentions_nvidia_runtime(text)
    try:
        return names_nvidia_runtime(text)
    except ValueError:
        return None


def _cdi_devices(facts: Facts) -> tuple[str, ...] | None:
    """Return the NVIDIA devices of the specifications; unknown if one could not be read."""
    texts = file_texts(facts, "*/cdi/*").values()
    try:
        names = [name for text in texts for name in parse_cdi_devices(text)]
    except ValueError:
        return None
    if unreadable(facts, "*/cdi/*"):
        return None
    return tuple(dict.fromkeys(name for name in names if name.startswith("nvidia.com/")))


def container_engine(facts: Facts) -> str:
    """Return the engine, "other" for one that leaves no name, "" outside of a container."""
    if value(facts, "is_set:KUBERNETES_SERVICE_HOST") or listed(facts, "/var/run/secrets/kubernetes.io"):
        return "kubernetes"
    if listed(facts, "/.singularity.d") and (
        value(facts, "is_set:APPTAINER_CONTAINER") or value(facts, "is_set:SINGULARITY_CONTAINER")
    ):
        return "apptainer"
    engine = _engine_of_cgroup(facts)
    if engine == "kubernetes":
        return engine
    if listed(facts, "/run/.containerenv"):
        return "podman"
    if listed(facts, "/.dockerenv"):
        return "docker"
    manager = (file_text(facts, "/run/systemd/container") or "").strip()
    if manager and manager != "wsl":  # systemd also names WSL, which is not a container
        return manager.removesuffix("-libvirt")
    return engine or ("lxc" if listed(facts, "/dev/lxd") else "") or _unnamed(facts)


def _engine_of_cgroup(facts: Facts) -> str:
    match = re.search(r"[/:-](kubepods|docker|libpod|lxc|containerd)[/.-]", file_text(facts, "/proc/1/cgroup") or "")
    return _ENGINES[match[1]] if match else ""


def _unnamed(facts: Facts) -> str:
    """Return "other" for the step of an image's build, which has no sign but its layers mounted as the root.

    Systems that boot from an image (ostree with composefs) have them too. They also have an init process.
    """
    first_process = (file_text(facts, "/proc/1/comm") or "").strip()
    layered = value(facts, "filesystem:/") == "overlay"
    return "other" if layered and first_process and first_process not in _FIRST_PROCESSES else ""
