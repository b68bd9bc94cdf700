"""The container engines on this machine and whether they know the NVIDIA runtime, as files tell."""

from collections.abc import Mapping
from typing import Any

from gpudoctor.model import Container
from gpudoctor.parsers.containers import mentions_nvidia_runtime, names_nvidia_runtime, parse_cdi_devices
from gpudoctor.probes.reading import Facts, file_texts, found, is_linux, unreadable

DOCKER_CONFIGS = ("/etc/docker/daemon.json", "/var/snap/docker/current/config/daemon.json")
OTHER_CONFIGS = (
    "/etc/containerd/config.toml",
    "/etc/containerd/conf.d/*.toml",
    "/etc/crio/crio.conf",
    "/etc/crio/crio.conf.d/*",
    "/etc/containers/containers.conf",
    "/etc/containers/containers.conf.d/*.conf",
    "/etc/containers/oci/hooks.d/*nvidia*.json",
    "/usr/share/containers/oci/hooks.d/*nvidia*.json",
)
CDI_SPECIFICATIONS = ("/etc/cdi/*", "/var/run/cdi/*")
COMMANDS = ("docker", "podman", "nvidia-ctk", "nvidia-container-cli", "nvidia-container-runtime")


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
    docker, podman, *toolkit = (_is_installed(facts, command) for command in COMMANDS)
    return Container(
        docker_installed=docker,
        podman_installed=podman,
        toolkit_installed=None if None in toolkit else any(toolkit),
        nvidia_runtime_configured=_runtime_configured(facts) if is_linux(facts) else None,
        cdi_devices=_cdi_devices(facts) if is_linux(facts) else None,
    )


def _is_installed(facts: Facts, command: str) -> bool | None:
    path = found(facts, command)
    return None if path is None else bool(path)


def _runtime_configured(facts: Facts) -> bool | None:
    """Tell whether a configuration names the NVIDIA runtime; unknown where one could not be read, or is elsewhere."""
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
    """Return the NVIDIA devices of the specifications; unknown where one could not be read."""
    texts = file_texts(facts, "*/cdi/*").values()
    try:
        names = [name for text in texts for name in parse_cdi_devices(text)]
    except ValueError:
        return None
    if unreadable(facts, "*/cdi/*"):
        return None
    return tuple(dict.fromkeys(name for name in names if name.startswith("nvidia.com/")))
