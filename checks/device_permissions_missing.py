"""Whether this user may open the driver's device nodes."""

from collections.abc import Iterator

from gpudoctor.conclusions.error_codes import NVML_NO_PERMISSION, gpu_nodes, in_container, in_wsl, nvml_error
from gpudoctor.model import DeviceFile, Driver, Finding, Remedy, Severity, Symptom, System
from gpudoctor.registry import Skip, check, known, skip_unless

REFUSED_BY_CGROUP = "operation not permitted"


@check(
    family="driver",
    explains=("torch-cuda-unavailable", "cupy-unusable", "cuda-init-unknown-error-999", "driver-not-loaded"),
)
def device_permissions_missing(
    driver: Driver | None = None, system: System | None = None, symptoms: tuple[Symptom, ...] | None = None
) -> Iterator[Finding]:
    """The device nodes of the driver exist, but this user cannot open them.

    Why: libcuda opens /dev/nvidiactl, /dev/nvidia-uvm and /dev/nvidia0; where it may not, CUDA sees no device, although
    nvidia-smi works for root.
    Exception: a batch system that grants some GPUs of a machine refuses the others on purpose. Containers have a check
    of their own.
    Reference: https://download.nvidia.com/XFree86/Linux-x86_64/580.95.05/README/faq.html
    """
    skip_unless(not in_container(system), "a container's device nodes are its host's")
    skip_unless(not in_wsl(system), "WSL has no device nodes of NVIDIA")
    said = nvml_error(NVML_NO_PERMISSION, None, symptoms)
    if said:
        yield Finding(
            severity=Severity.ERROR,
            summary="NVML says that this user may not open the driver's device nodes: insufficient permissions",
            subject="/dev/nvidiactl",
            facts=(said,),
            remedies=(_join_group(),),
        )
        return
    if driver is None:
        raise Skip("driver is unknown")
    nodes = known(gpu_nodes(driver), "driver.device_files")
    refused = [node for node in nodes if node.accessible is False]
    gpus = [node for node in nodes if node.path[-1].isdigit()]
    shared = [node for node in refused if node not in gpus]
    if not refused or (not shared and any(node not in refused for node in gpus)):
        return
    first = refused[0]
    reason = f" ({first.error})" if first.error else ""
    yield Finding(
        severity=Severity.ERROR,
        summary=f"This user cannot open {_names(refused)}, of mode {first.mode or 'unknown'}{reason}",
        subject=first.path,
        facts=tuple(f"driver.device_files[{(driver.device_files or ()).index(node)}].accessible" for node in refused),
        remedies=(_ask_the_scheduler() if first.error.lower() == REFUSED_BY_CGROUP else _join_group(),),
    )


def _names(nodes: list[DeviceFile]) -> str:
    return nodes[0].path if len(nodes) == 1 else f"{nodes[0].path} and {len(nodes) - 1} more device nodes"


def _join_group() -> Remedy:
    return Remedy(
        summary="Join the group that owns the device nodes, then log in again",
        commands=('sudo usermod -aG "$(stat -c %G /dev/nvidiactl)" "$(id -un)"', "ls -l /dev/nvidiactl && id -Gn"),
        needs=("root", "restart"),
    )


def _ask_the_scheduler() -> Remedy:
    return Remedy(
        summary="A cgroup refuses the device: ask the batch system for a GPU",
        commands=("srun --gres=gpu:1 nvidia-smi",),
        reference="https://slurm.schedmd.com/gres.html",
    )
