"""A container that had the GPU and lost it."""

from collections.abc import Iterator

from gpudoctor.conclusions.containers import told_of_container
from gpudoctor.conclusions.error_codes import (
    NVML_NO_PERMISSION,
    NVML_UNKNOWN,
    gpu_nodes,
    in_container,
    in_wsl,
    nvml_error,
)
from gpudoctor.conclusions.messages import reported
from gpudoctor.model import (
    Container,
    DeviceFile,
    Driver,
    Finding,
    Remedy,
    Severity,
    Symptom,
    System,
)
from gpudoctor.registry import Skip, check, known, skip_unless

TROUBLESHOOTING = (
    "https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/troubleshooting.html"
    "#containers-losing-access-to-gpus-with-error-failed-to-initialize-nvml-unknown-error"
)


@check(
    family="container",
    explains=(
        "torch-cuda-unavailable",
        "cupy-unusable",
        "cuda-init-unknown-error-999",
        "cuda-visible-devices-hides-gpu",
        "device-permissions-missing",
    ),
)
def container_nvml_lost(
    driver: Driver | None = None,
    system: System | None = None,
    container: Container | None = None,
    symptoms: tuple[Symptom, ...] | None = None,
) -> Iterator[Finding]:
    """The container has lost access to the GPU.

    Why: `systemctl daemon-reload` on the host (any package update may call it) rewrites the device rules of running
    containers and forgets those that a hook of the NVIDIA runtime added: NVML then says "Unknown Error", and opening
    /dev/nvidiactl fails with "Operation not permitted". SELinux gives "Insufficient Permissions" instead.
    Exception: outside containers the same text has other causes: a driver that fails, after suspend or an upgrade.
    Reference: https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/troubleshooting.html
    """
    skip_unless(system is None or system.container != "", "this is not a container")
    skip_unless(not in_wsl(system), "WSL has no device rules for the GPU")
    inside = told_of_container(system, container)
    told = reported(symptoms, "container-worked-before", *(("container-context-refused",) if inside else ()))
    if told and (driver is None or (driver.nvml_error is None and driver.nvml_code is None)):
        yield _finding("The container has lost the GPU that it had", (told[0][0],), system, container)
        return
    driver = known(driver, "driver")
    lost = nvml_error(NVML_UNKNOWN, driver) or (_printed(symptoms) if inside else None)
    forbidden = nvml_error(NVML_NO_PERMISSION, driver) if inside else None
    refused = _refused(driver) if in_container(system) else None
    if not lost and not forbidden and refused is None:
        if driver.nvml_code is None and driver.nvml_error is None:
            raise Skip("driver.nvml_code is unknown")
        return
    failure = lost or forbidden
    text = f"NVML fails ({' '.join((driver.nvml_error or str(driver.nvml_code)).split())})" if failure else ""
    opening = f"{refused.path} cannot be opened ({refused.error or 'refused'})" if refused is not None else ""
    number = (driver.device_files or ()).index(refused) if refused is not None else 0
    facts = (
        *((failure,) if failure else ()),
        *((told[0][0],) if told else ()),
        *((f"driver.device_files[{number}].accessible",) if refused is not None else ()),
    )
    summary = f"The container has lost the GPU: {' and '.join(part for part in (text, opening) if part)}"
    yield _finding(summary, facts, system, container, selinux=bool(forbidden))


def _finding(
    summary: str,
    facts: tuple[str, ...],
    system: System | None,
    container: Container | None,
    *,
    selinux: bool = False,
) -> Finding:
    remedies = (_selinux(),) if selinux else (_restart(system), _prevent(system), _cgroupfs())
    # A pasted message does not tell where it was printed.
    unsure = () if selinux or told_of_container(system, container) else (_outside(),)
    return Finding(
        severity=Severity.ERROR,
        summary=summary,
        subject=f"{system.container} container" if system is not None and system.container else "container",
        facts=facts,
        remedies=(*remedies, *unsure),
    )


def _printed(symptoms: tuple[Symptom, ...] | None) -> str | None:
    """Return the error that a report shows beside an nvidia-smi that works: on the host, or before the loss."""
    return next((path for path, _ in reported(symptoms, "container-nvml-unknown-error")), None)


def _refused(driver: Driver) -> DeviceFile | None:
    """Return the first device node that is there and cannot be opened, if no GPU's node can be."""
    nodes = gpu_nodes(driver) or ()
    refused = [node for node in nodes if node.accessible is False]
    usable = [node for node in nodes if node.path[-1].isdigit() and node not in refused]
    shared = [node for node in refused if not node.path[-1].isdigit()]
    return refused[0] if refused and (shared or not usable) else None


def _restart(system: System | None) -> Remedy:
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


def _prevent(system: System | None) -> Remedy:
    engine = "podman" if system is not None and system.container == "podman" else "docker"
    start = f"{engine} run --device nvidia.com/gpu=all IMAGE nvidia-smi"
    return Remedy(
        summary="Against the next loss use CDI, which tells the engine of the devices, or name them "
        "(--device /dev/nvidia0 --device /dev/nvidiactl --device /dev/nvidia-uvm): both survive a daemon-reload",
        commands=("sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml", start),
        needs=("root",),
        reference=TROUBLESHOOTING,
    )


def _cgroupfs() -> Remedy:
    return Remedy(
        summary='Or let Docker set the device rules itself, "exec-opts": ["native.cgroupdriver=cgroupfs"] in '
        "/etc/docker/daemon.json, and update the NVIDIA Container Toolkit",
        commands=("sudo systemctl restart docker", "docker info --format '{{.CgroupDriver}}'"),
        needs=("root", "restart"),
        reference=TROUBLESHOOTING,
    )


def _outside() -> Remedy:
    return Remedy(
        summary="If that was outside a container, the driver itself fails: reboot, and read what the kernel says of it",
        commands=("sudo dmesg | grep -i nvrm", "sudo reboot", "nvidia-smi"),
        needs=("root", "reboot"),
    )


def _selinux() -> Remedy:
    return Remedy(
        summary="SELinux refuses the devices: start the container without its labels, or with a policy for them",
        commands=("docker run --security-opt=label=disable --gpus all IMAGE nvidia-smi",),
        needs=("restart",),
        reference="https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/troubleshooting.html",
    )
