"""A container that had the GPU and lost it."""

from collections.abc import Iterator

from gpudoctor.model import ContainerGpu, DeviceFile, Driver, Finding, Fix, Place, System
from gpudoctor.registry import CUDA_FAILS, Skip, check, skip_unless
from gpudoctor.symptoms import Symptoms, first, of_kind, with_code


@check(family="container", explains=(*CUDA_FAILS, "cuda-visible-devices-hides-gpu", "device-permissions-missing"))
def container_nvml_lost(
    container_gpu: ContainerGpu,
    place: Place,
    driver: Driver = Driver(),
    system: System = System(),
    symptoms: Symptoms = None,
) -> Iterator[Finding]:
    """The container has lost access to the GPU.

    Why: `systemctl daemon-reload` on the host (any package update may call it) rewrites the device rules of running
    containers and drops those that the NVIDIA runtime's hook added. NVML then says "Unknown Error", and opening
    /dev/nvidiactl fails with "Operation not permitted". SELinux gives "Insufficient Permissions" instead.
    Exception: outside a container the same message has other causes, such as a driver that fails after suspend or an
    upgrade. container-setup-nvml-lost checks containers from outside.
    Reference: https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/troubleshooting.html
    """
    skip_unless(system.container != "", "this is not a container")
    skip_unless(not place.in_wsl, "WSL has no device rules for the GPU")
    inside = place.about_container
    kinds = ("container-worked-before", *(("container-context-refused",) if inside else ()))
    later = ("gpu-lost-after-a-while",) if inside or of_kind(symptoms, "place-docker", "place-kubernetes") else ()
    said = of_kind(symptoms, *kinds, *later)
    unshown = (None,) if place.in_container else (None, 0)  # nvidia-smi may have run on the host
    if said and driver.nvml_error is None and driver.nvml_code in unshown:
        yield _finding("The container has lost the GPU that it had", said[0].fact, place=place, system=system)
        return
    # nvidia-smi may have worked on the host, or before the loss.
    lost = with_code(symptoms, "nvml-999") or (of_kind(symptoms, "container-nvml-unknown-error") if inside else ())
    forbidden = with_code(symptoms, "nvml-4") if inside else ()
    refused = _refused(container_gpu.nodes or ()) if place.in_container else None
    failure = first(lost, forbidden)
    if failure is None and refused is None:
        if driver.nvml_code is None and driver.nvml_error is None:
            raise Skip("driver.nvml_code is unknown")
        return
    facts = [failure.fact] if failure is not None else []
    facts += [said[0].fact] if said else []
    parts = []
    if failure is not None:
        parts.append(f"NVML fails ({' '.join((driver.nvml_error or failure.text).split())})")
    if refused is not None:
        parts.append(f"{refused.path} cannot be opened ({refused.error or 'refused'})")
        facts.append(f"driver.device_files[{(driver.device_files or ()).index(refused)}].accessible")
    summary = f"The container has lost the GPU: {' and '.join(parts)}"
    yield _finding(summary, *facts, place=place, system=system, selinux=bool(forbidden))


def _finding(summary: str, *facts: str, place: Place, system: System, selinux: bool = False) -> Finding:
    names = ["restart-container-from-host", "start-container-with-cdi", "use-cgroupfs-in-docker"]
    if not place.about_container:  # a pasted message does not show where it was printed
        names.append("reboot-failing-driver")
    if selinux:
        names = ["start-container-without-selinux-labels"]
    return Finding.error(
        f"{system.container} container" if system.container else "container", summary, facts, *map(Fix, names)
    )


def _refused(nodes: tuple[DeviceFile, ...]) -> DeviceFile | None:
    """Return the first device node that is there and cannot be opened, if no GPU's node can be."""
    refused = [node for node in nodes if node.accessible is False]
    usable = [node for node in nodes if node.path[-1].isdigit() and node not in refused]
    shared = [node for node in refused if not node.path[-1].isdigit()]
    return refused[0] if refused and (shared or not usable) else None
