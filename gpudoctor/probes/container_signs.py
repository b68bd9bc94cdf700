"""The signs by which a program knows that it runs in a container, and in one of which engine."""

import re

from gpudoctor.probes.reading import Facts, file_text, listed, value

CONTAINER_SIGNS = {
    "files": ["/run/systemd/container", "/proc/1/cgroup", "/proc/1/comm"],
    "listings": ["/.dockerenv", "/run/.containerenv", "/var/run/secrets/kubernetes.io", "/.singularity.d", "/dev/lxd"],
    "values": [
        "platform",
        "filesystem:/",
        "is_set:KUBERNETES_SERVICE_HOST",
        "is_set:APPTAINER_CONTAINER",
        "is_set:SINGULARITY_CONTAINER",
    ],
}
_ENGINES = {"docker": "docker", "libpod": "podman", "lxc": "lxc", "kubepods": "kubernetes", "containerd": "containerd"}
_FIRST_PROCESSES = {"systemd", "init", "openrc-init", "runit", "s6-svscan", "dinit"}


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
    if manager and manager != "wsl":  # systemd names WSL too, which is none
        return manager.removesuffix("-libvirt")
    return engine or ("lxc" if listed(facts, "/dev/lxd") else "") or _unnamed(facts)


def _engine_of_cgroup(facts: Facts) -> str:
    match = re.search(r"[/:-](kubepods|docker|libpod|lxc|containerd)[/.-]", file_text(facts, "/proc/1/cgroup") or "")
    return _ENGINES[match[1]] if match else ""


def _unnamed(facts: Facts) -> str:
    """Return "other" for the step of an image's build, which has no sign but its layers mounted as the root.

    Systems that boot from an image (ostree with composefs) have them too, and an init process besides.
    """
    first_process = (file_text(facts, "/proc/1/comm") or "").strip()
    layered = value(facts, "filesystem:/") == "overlay"
    return "other" if layered and first_process and first_process not in _FIRST_PROCESSES else ""
