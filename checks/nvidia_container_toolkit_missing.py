"""The host's container engine and the GPU."""

from collections.abc import Iterator
from dataclasses import replace

from gpudoctor.conclusions.container_lacks import CDI, NAMED, Lack, lacks_of_engine
from gpudoctor.conclusions.container_setups import each, each_once, engine_of, failed_with, named
from gpudoctor.conclusions.error_codes import in_container, nvidia_gpus, works
from gpudoctor.conclusions.messages import reported
from gpudoctor.model import (
    Container,
    Containers,
    ContainerSetup,
    Device,
    Driver,
    Finding,
    Remedy,
    Severity,
    Symptom,
    System,
)
from gpudoctor.registry import check, known, skip_unless
from gpudoctor.remedies import (
    configure_engine,
    install_container_toolkit,
    leave_docker_desktop,
    replace_docker_snap,
    start_container_with_gpu,
    update_driver,
)

# What each message tells. Source: the table of failure messages.
MISSING = {
    "container-no-device-driver": "Docker has no driver for GPUs",
    "container-no-gpu-vendor": "Docker finds no CDI specification of a GPU",
    "container-unknown-runtime": "The engine's configuration names no runtime nvidia",
    "container-hook-missing": "A program of the NVIDIA Container Toolkit is missing",
    "container-engine-too-old": "This Docker is older than 19.03, the first that knows --gpus",
    "container-lxd-tools": "LXD has no NVIDIA container tools",
}
BROKEN = {
    "container-device-rules": "The NVIDIA Container Toolkit cannot set the device rules of this system's cgroups",
    "container-ldconfig": "The NVIDIA Container Toolkit is configured with a wrong path of ldconfig",
    "container-no-permission": "The container runtime may not open the device nodes of the GPU",
    "container-driver-in-image": "The image brings driver libraries of its own, in the way of those of the host",
    "container-mount-failed": "The NVIDIA Container Toolkit may not mount the driver's files into the container",
}
NO_LIBRARIES = ("container-library-not-loaded", "container-driver-error")
NO_LIBCUDA = "libcuda-not-found-by-container"
KUBERNETES = {
    "container-k8s-plugin": "The device plugin of Kubernetes finds no GPU on its node",
    "container-k8s-insufficient": "No node of the cluster offers a free GPU",
}
PLUGIN = "https://github.com/NVIDIA/k8s-device-plugin#quick-start"


@check(family="container", explains=("container-without-gpu", "driver-capabilities-missing"))
def nvidia_container_toolkit_missing(
    container: Container | None = None,
    system: System | None = None,
    driver: Driver | None = None,
    devices: tuple[Device, ...] | None = None,
    containers: Containers | None = None,
    symptoms: tuple[Symptom, ...] | None = None,
) -> Iterator[Finding]:
    """The container engine of this machine cannot hand the GPU to a container.

    Why: without the NVIDIA Container Toolkit, `docker run --gpus all` ends with "could not select device driver" and
    `--runtime=nvidia` with "unknown or invalid runtime name".
    Exception: many machines run containers that need no GPU, so without such a message this is advice. A CDI
    specification does the same as the configured runtime; Docker Desktop under WSL brings its own.
    Reference: https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/install-guide.html
    """
    seen = tuple(each_once(_of_setups(containers, container, system)))
    yield from seen
    told = tuple(_told(container, system, driver, devices, symptoms))
    yield from told[:1]
    if told or seen:
        return
    container = known(container, "container")
    skip_unless(not in_container(system), "containers are started by this one's host")
    skip_unless(system is None or system.os in (None, "linux"), "the toolkit is for Linux")
    skip_unless(system is None or not system.wsl, "Docker Desktop hands the GPU to containers of WSL by itself")
    skip_unless(devices or nvidia_gpus(system) != (), "there is no NVIDIA GPU")
    skip_unless(driver is None or driver.installed is not False, "no driver is installed")
    engine = "docker" if container.docker_installed else "podman" if container.podman_installed else ""
    if not engine:
        known(container.docker_installed, "container.docker_installed")
        skip_unless(engine, "there is no container engine")
    installed = known(container.toolkit_installed, "container.toolkit_installed")
    if container.cdi_devices or (installed and container.nvidia_runtime_configured is not False):
        return
    if installed:
        summary = f"The NVIDIA Container Toolkit is installed, but {engine} is not configured for it"
        remedy = configure_engine(system=system, container=container, engine=engine)
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


def _told(
    container: Container | None,
    system: System | None,
    driver: Driver | None,
    devices: tuple[Device, ...] | None,
    symptoms: tuple[Symptom, ...] | None,
) -> Iterator[Finding]:
    """Yield what the messages of a report tell, the plainest first."""
    on_host = works(driver, devices)
    host = f", although driver {driver.version} works" if on_host and driver and driver.version else ""
    for kind, text in (*MISSING.items(), *BROKEN.items()):
        for fact, _ in reported(symptoms, kind):
            yield _failure(f"{text}{host}", fact, _for_docker(kind, container, system))
    # Where nvidia-smi works and libcuda alone is missing, that is libcuda-not-on-linker-path.
    yield from _not_restarted(container, system, symptoms)
    for fact, message in reported(symptoms, *NO_LIBRARIES, *(() if on_host else (NO_LIBCUDA,))):
        library = message.names.get("library")
        what = f"does not find {library}" if library else "gets no answer from the driver"
        where = "the engine runs where the driver is not" if on_host else "where the engine runs no driver is loaded"
        text = f"The container runtime {what}{host}: {where}"
        yield _failure(text, fact, _for_engine_without_driver(container, system, driver if on_host else None))
    for fact, _ in reported(symptoms, CDI):
        podman = container is None or container.engine != "docker"
        first = configure_engine(system=system, container=container, engine="podman")
        then = install_container_toolkit(system=system)
        text = f"The engine finds no CDI specification of the GPU{host}"
        yield _failure(text, fact, (first, then) if podman else (then, first))
    for kind, text in KUBERNETES.items():
        for fact, _ in reported(symptoms, kind):
            yield _failure(f"{text}{host}", fact, _for_kubernetes(system))


def _not_restarted(
    container: Container | None, system: System | None, symptoms: tuple[Symptom, ...] | None
) -> Iterator[Finding]:
    """Yield where the running engine does not know the runtime that its configuration names."""
    running = reported(symptoms, "docker-runtimes-without-nvidia")
    written = reported(symptoms, "docker-configuration-names-nvidia")
    for fact, _ in running if written else ():
        yield _failure(
            "The running Docker does not know the runtime nvidia that daemon.json names: it was not restarted since, "
            "or reads another file",
            fact,
            (configure_engine(system=system, container=container), replace_docker_snap(system=system)),
        )


def _failure(summary: str, fact: str, remedies: tuple[Remedy, ...]) -> Finding:
    return Finding(
        severity=Severity.ERROR, summary=summary, subject="container engine", facts=(fact,), remedies=remedies
    )


def _for_docker(kind: str, container: Container | None, system: System | None) -> tuple[Remedy, ...]:
    """Return the remedies for an engine that knows no GPU, by how the engine was installed."""
    install = install_container_toolkit(system=system)
    configure = configure_engine(system=system, container=container)
    if container is not None and container.docker_snap:
        return (replace_docker_snap(system=system), install)
    if container is not None and container.docker_desktop and (system is None or system.os in (None, "linux")):
        return (leave_docker_desktop(), install)
    if kind == "container-no-permission":
        return (_selinux(), configure, install)
    if kind == "container-engine-too-old":
        newer = Remedy(
            summary="Update Docker: --gpus came with 19.03", reference="https://docs.docker.com/engine/install/"
        )
        return (newer, install)
    if kind == "container-ldconfig":
        return (_ldconfig(), install)
    if kind == "container-driver-in-image":
        return (_without_driver_in_image(), install)
    if kind in BROKEN or (container is not None and (container.rootless or container.toolkit_installed)):
        return (configure, install, replace_docker_snap(system=system))
    return (install, configure, replace_docker_snap(system=system))


def _for_engine_without_driver(
    container: Container | None, system: System | None, driver: Driver | None
) -> tuple[Remedy, ...]:
    """Return the remedies where the container runtime sees no driver. driver: that of the host, where it works."""
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
    if driver is not None:
        return (desktop, snap, look, install)
    return (look, update_driver(system=system, needed=None), desktop, snap, install)


def _for_kubernetes(system: System | None) -> tuple[Remedy, ...]:
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


def _selinux() -> Remedy:
    return Remedy(
        summary="SELinux refuses the devices: start the container without its labels, or with a policy for them",
        commands=("docker run --rm --security-opt=label=disable --gpus all ubuntu nvidia-smi",),
        needs=("restart",),
        reference="https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/troubleshooting.html",
    )


def _without_driver_in_image() -> Remedy:
    return Remedy(
        summary="Take the driver's libraries out of the image (a build on a machine with the GPU leaves them there): "
        "the NVIDIA Container Toolkit brings those of the host",
        commands=(
            "rm -f /usr/lib/x86_64-linux-gnu/libcuda.so* /usr/lib/x86_64-linux-gnu/libnvidia-*.so*",
            "docker build --no-cache --tag IMAGE .",
        ),
        needs=("restart",),
    )


def _ldconfig() -> Remedy:
    return Remedy(
        summary='Set ldconfig = "@/sbin/ldconfig" in /etc/nvidia-container-runtime/config.toml '
        '("@/sbin/ldconfig.real" on Ubuntu)',
        commands=("grep ldconfig /etc/nvidia-container-runtime/config.toml", "ls /sbin/ldconfig /sbin/ldconfig.real"),
        needs=("root",),
    )


def _of_setups(
    containers: Containers | None, container: Container | None, system: System | None
) -> Iterator[tuple[ContainerSetup, Finding]]:
    """Yield the containers and services, seen from outside, that ask for the GPU and cannot be given it.

    What the engine lacks is one finding, whatever the number of those that lack it.
    """
    lacks = [lack for path, setup in each(containers) for lack in _lacks_of(path, setup, containers, container)]
    for number, first in enumerate(lacks):
        if first.kind in {lack.kind for lack in lacks[:number]}:
            continue
        others = sorted({named(lack.setup) for lack in lacks if lack.kind == first.kind} - {named(first.setup)})
        summary = first.text + (f" (and so the {', the '.join(others[:NAMED])})" if others else "")
        remedies = _for_message(first.kind, container, system)
        yield first.setup, replace(_failure(summary, first.facts[0], remedies), facts=first.facts)


def _lacks_of(
    path: str, setup: ContainerSetup, containers: Containers | None, container: Container | None
) -> Iterator[Lack]:
    failed = failed_with(path, setup, *MISSING, *BROKEN, *NO_LIBRARIES, NO_LIBCUDA, CDI)
    if failed:
        fact, message = failed[0]
        what = {**MISSING, **BROKEN}.get(message.kind, "The engine could not hand over the GPU")
        said = " ".join(message.text.split())[:120]
        text = f"{what}: the {named(setup)} did not start ({said})"
        yield Lack(setup=setup, kind=message.kind, text=text, facts=(fact,))
    elif setup.state != "running":
        yield from lacks_of_engine(path, setup, engine_of(containers), container)


def _for_message(kind: str, container: Container | None, system: System | None) -> tuple[Remedy, ...]:
    """Return the remedies for what the engine said, or would say."""
    if kind == CDI:
        return (_write_cdi(), install_container_toolkit(system=system))
    if kind in (*NO_LIBRARIES, NO_LIBCUDA):
        return _for_engine_without_driver(container, system, None)
    return _for_docker(kind, container, system)


def _write_cdi() -> Remedy:
    return Remedy(
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
