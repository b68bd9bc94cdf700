"""Container engines that cannot give the GPU to a container, by what is wrong with them."""

from __future__ import annotations

from gpudoctor.model import Container, Remedy, System
from gpudoctor.remedies.containers import (
    configure_engine,
    install_container_toolkit,
    leave_docker_desktop,
    replace_docker_snap,
    start_container_with_gpu,
)
from gpudoctor.remedies.driver_install import update_driver
from gpudoctor.remedies.fixes import fix

TROUBLESHOOTING = "https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/troubleshooting.html"
DAEMON_RELOAD = f"{TROUBLESHOOTING}#containers-losing-access-to-gpus-with-error-failed-to-initialize-nvml-unknown-error"
PLUGIN = "https://github.com/NVIDIA/k8s-device-plugin#quick-start"


@fix
def let_engine_use_gpu(
    fault: str = "not-installed", *, container: Container | None, system: System | None
) -> tuple[Remedy, ...]:
    """Return how an engine gets the NVIDIA Container Toolkit, by how the engine was installed.

    fault: "not-installed", "misconfigured", "refused" (SELinux), "engine-too-old", "ldconfig", "driver-in-image".
    """
    install = install_container_toolkit(system=system)
    configure = configure_engine(system=system, container=container)
    if container is not None and container.docker_snap:
        return (replace_docker_snap(system=system), install)
    if container is not None and container.docker_desktop and (system is None or system.os in (None, "linux")):
        return (leave_docker_desktop(), install)
    if fault == "refused":
        return (without_selinux_labels(), configure, install)
    if fault in _FAULTS:
        return (_FAULTS[fault], install)
    is_there = container is not None and (container.rootless or container.toolkit_installed)
    if fault == "misconfigured" or is_there:
        return (configure, install, replace_docker_snap(system=system))
    return (install, configure, replace_docker_snap(system=system))


@fix
def restart_docker_with_toolkit(*, container: Container | None, system: System | None) -> tuple[Remedy, ...]:
    """Return what helps if the running Docker does not know what its configuration says."""
    return (configure_engine(system=system, container=container), replace_docker_snap(system=system))


@fix
def let_engine_see_driver(
    driver_works: bool = False, *, container: Container | None, system: System | None
) -> tuple[Remedy, ...]:
    """Return what helps if the container runtime finds no driver. driver_works: on the host it does."""
    snap, desktop = replace_docker_snap(system=system), leave_docker_desktop()
    install = install_container_toolkit(system=system)
    if system is not None and system.os == "windows":
        return (install,)
    if container is not None and container.docker_snap:
        return (snap, install)
    if container is not None and container.docker_desktop:
        return (desktop, install)
    look = Remedy(
        summary="See whether the driver works on the host and which engine this is: a host without a driver needs one "
        "(or a reboot after its installation), Docker Desktop and a snap do not see the driver of the host",
        commands=(
            "nvidia-smi",
            "docker context ls",
            "snap list docker",
            "sudo nvidia-container-cli -k -d /dev/tty info",
        ),
    )
    if driver_works:
        return (desktop, snap, look, install)
    return (look, update_driver(system=system, needed=None), desktop, snap, install)


@fix
def write_cdi_specification(*, container: Container | None, system: System | None) -> tuple[Remedy, ...]:
    """Return how the engine gets a CDI specification of the GPUs: podman reads it unless the engine is Docker."""
    podman = configure_engine(system=system, container=container, engine="podman")
    install = install_container_toolkit(system=system)
    is_docker = container is not None and container.engine == "docker"
    return (install, podman) if is_docker else (podman, install)


@fix
def write_cdi_specification_for_docker(*, system: System | None) -> tuple[Remedy, ...]:
    """Return how Docker gets a CDI specification of the GPUs."""
    write = Remedy(
        summary='Write the CDI specification of the GPUs, and switch CDI on in Docker before 28.2: "features": '
        '{"cdi": true} in /etc/docker/daemon.json',
        commands=(
            "sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml",
            "nvidia-ctk cdi list",
            "sudo systemctl restart docker",
            "docker run --rm --device nvidia.com/gpu=all ubuntu nvidia-smi",
        ),
        needs=("root", "restart"),
        reference="https://docs.docker.com/reference/cli/dockerd/#configure-cdi-devices",
    )
    return (write, install_container_toolkit(system=system))


@fix
def let_kubernetes_use_gpu(*, system: System | None) -> tuple[Remedy, ...]:
    """Return how the nodes of a cluster offer their GPUs, and how a pod asks for one."""
    node = Remedy(
        summary="On the node install the NVIDIA Container Toolkit and make containerd use it (CRI-O: --runtime=crio), "
        "then install NVIDIA's device plugin or the GPU operator",
        commands=(
            "sudo nvidia-ctk runtime configure --runtime=containerd --set-as-default",
            "sudo systemctl restart containerd",
            "kubectl describe nodes | grep nvidia.com/gpu",
        ),
        needs=("root", "restart"),
        reference=PLUGIN,
    )
    taken = Remedy(
        summary="See what asks for the GPUs of the nodes: each pod with nvidia.com/gpu has its GPUs for itself",
        commands=("kubectl describe nodes", "kubectl logs -n kube-system -l name=nvidia-device-plugin-ds"),
    )
    pod = start_container_with_gpu(system=system, container=Container(engine="kubernetes"))
    return (node, taken, pod)


@fix
def start_container_without_selinux_labels() -> Remedy:
    """Return how a container gets device nodes that SELinux refuses, for a container that is there."""
    return Remedy(
        summary="SELinux refuses the devices: start the container without its labels, or with a policy for them",
        commands=("docker run --security-opt=label=disable --gpus all IMAGE nvidia-smi",),
        needs=("restart",),
        reference=TROUBLESHOOTING,
    )


@fix
def restart_container_from_host(*, system: System | None) -> Remedy:
    """Return how a container gets a GPU back that it has lost."""
    if system is not None and system.container == "kubernetes":
        return Remedy(
            summary="Delete the pod: a new one gets the GPU again",
            commands=("kubectl delete pod POD",),
            needs=("restart",),
        )
    engine = "podman" if system is not None and system.container == "podman" else "docker"
    return Remedy(
        summary="On the host restart the container: it gets the GPU again",
        commands=(f"{engine} restart CONTAINER", f"{engine} exec CONTAINER nvidia-smi"),
        needs=("restart",),
    )


@fix
def reboot_failing_driver() -> Remedy:
    """Return what helps if what looks like a container's loss is a driver that fails."""
    return Remedy(
        summary="If that was outside a container, the driver itself fails: reboot, and read what the kernel says of it",
        commands=("sudo dmesg | grep -i nvrm", "sudo reboot", "nvidia-smi"),
        needs=("root", "reboot"),
    )


def without_selinux_labels() -> Remedy:
    """Return how a container gets device nodes that SELinux refuses."""
    return Remedy(
        summary="SELinux refuses the devices: start the container without its labels, or with a policy for them",
        commands=("docker run --rm --security-opt=label=disable --gpus all ubuntu nvidia-smi",),
        needs=("restart",),
        reference=TROUBLESHOOTING,
    )


@fix
def start_container_with_cdi(*, system: System | None) -> Remedy:
    """Return how a container keeps its GPU after a daemon-reload."""
    engine = "podman" if system is not None and system.container == "podman" else "docker"
    return Remedy(
        summary="To prevent the next loss, use CDI, which tells the engine the devices, or name them "
        "(--device /dev/nvidia0 --device /dev/nvidiactl --device /dev/nvidia-uvm): both survive a daemon-reload",
        commands=(
            "sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml",
            f"{engine} run --device nvidia.com/gpu=all IMAGE nvidia-smi",
        ),
        needs=("root",),
        reference=DAEMON_RELOAD,
    )


@fix
def use_cgroupfs_in_docker() -> Remedy:
    """Return how Docker sets device rules without systemd."""
    return Remedy(
        summary='Or let Docker set the device rules itself, "exec-opts": ["native.cgroupdriver=cgroupfs"] in '
        "/etc/docker/daemon.json, and update the NVIDIA Container Toolkit",
        commands=("sudo systemctl restart docker", "docker info --format '{{.CgroupDriver}}'"),
        needs=("root", "restart"),
        reference=DAEMON_RELOAD,
    )


@fix
def link_device_nodes() -> Remedy:
    """Return how systemd finds the device nodes of the driver."""
    return Remedy(
        summary="Create the links in /dev/char by which systemd finds the devices, and again after each boot",
        commands=("sudo nvidia-ctk system create-dev-char-symlinks --create-all", "ls -l /dev/char | grep nvidia"),
        needs=("root",),
        reference=DAEMON_RELOAD,
    )


_FAULTS = {
    "engine-too-old": Remedy(
        summary="Update Docker: --gpus came with 19.03", reference="https://docs.docker.com/engine/install/"
    ),
    "ldconfig": Remedy(
        summary='Set ldconfig = "@/sbin/ldconfig" in /etc/nvidia-container-runtime/config.toml '
        '("@/sbin/ldconfig.real" on Ubuntu)',
        commands=("grep ldconfig /etc/nvidia-container-runtime/config.toml", "ls /sbin/ldconfig /sbin/ldconfig.real"),
        needs=("root",),
    ),
    "driver-in-image": Remedy(
        summary="Remove the driver's libraries from the image (a build on a machine with the GPU leaves them there): "
        "the NVIDIA Container Toolkit adds those of the host",
        commands=(
            "rm -f /usr/lib/x86_64-linux-gnu/libcuda.so* /usr/lib/x86_64-linux-gnu/libnvidia-*.so*",
            "docker build --no-cache --tag IMAGE .",
        ),
        needs=("restart",),
    ),
}
