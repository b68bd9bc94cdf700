"""Devices that let no further program compute."""

from collections.abc import Iterator

from gpudoctor.conclusions.devices import label
from gpudoctor.conclusions.error_codes import DEVICE_UNAVAILABLE, cuda_error, in_container, in_wsl
from gpudoctor.conclusions.messages import reported
from gpudoctor.model import CupyRuntime, Device, Driver, Finding, Remedy, Severity, Symptom, System, TorchRuntime
from gpudoctor.registry import Skip, check, skip_unless

MODES = "https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#compute-modes"
PROHIBITED = "prohibited"


@check(family="device", explains=("torch-cuda-unavailable", "cupy-unusable"))
def device_busy(
    driver: Driver | None = None,
    devices: tuple[Device, ...] | None = None,
    torch_runtime: TorchRuntime | None = None,
    cupy_runtime: CupyRuntime | None = None,
    system: System | None = None,
    symptoms: tuple[Symptom, ...] | None = None,
) -> Iterator[Finding]:
    """The device is busy or unavailable: its compute mode, or a process that hangs, lets no program compute.

    Why: in the compute mode exclusive-process the first program keeps the device for itself, in the mode prohibited no
    program gets it; the next one fails with error 46, "CUDA-capable device(s) is/are busy or unavailable". In the
    default mode a process that hangs in the driver has the same effect.
    Exception: an exclusive device on which nothing failed is a choice, as of batch systems. Error 46 of a device in MIG
    mode is `mig-misconfigured`.
    Reference: https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#compute-modes
    """
    said = cuda_error(DEVICE_UNAVAILABLE, driver, torch_runtime, cupy_runtime, symptoms)
    prohibited = bool(devices) and all(device.compute_mode == PROHIBITED for device in devices or ())
    if not said and not prohibited:
        skip_unless(not reported(symptoms, "*"), "no such message in the report")
        if devices is None and torch_runtime is None and cupy_runtime is None:
            raise Skip("devices is unknown")
        return
    if any(device.mig_enabled for device in devices or ()):
        return
    number = next((n for n, d in enumerate(devices or ()) if d.compute_mode not in (None, "default")), None)
    device = devices[number] if devices and number is not None else None
    yield Finding(
        severity=Severity.ERROR,
        summary=_by_mode(device) if device else "CUDA says that the device is busy or unavailable (error 46)",
        subject=label(device) if device else "GPU",
        facts=(*((said,) if said else ()), *((f"devices[{number}].compute_mode",) if device else ())),
        remedies=_remedies(system, by_mode=device is not None),
    )


def _by_mode(device: Device) -> str:
    lets = "lets no program compute" if device.compute_mode == PROHIBITED else "lets one program at a time compute"
    return f"{label(device)} is in the compute mode {device.compute_mode}, which {lets}"


def _remedies(system: System | None, *, by_mode: bool) -> tuple[Remedy, ...]:
    """Return what helps, the compute mode first where it is known to be the reason."""
    where = ", on the container's host" if in_container(system) else ""
    windows = in_wsl(system) or (system is not None and system.os == "windows")
    sudo = "" if windows else "sudo "
    mode = Remedy(
        summary=f"Set the compute mode to default, so that several programs share the device{where}; a batch system "
        "that made it exclusive gives each job a GPU of its own: ask it for one, and start one process per GPU",
        commands=("nvidia-smi --query-gpu=index,name,compute_mode --format=csv", f"{sudo}nvidia-smi -c 0"),
        needs=("root",),
        reference=MODES,
    )
    end = Remedy(
        summary=f"Look which process has the device, also one that hangs or is left over, and end it{where}; then try "
        "again, and reboot where it stays busy",
        commands=("nvidia-smi --query-compute-apps=pid,name,used_memory --format=csv",)
        if windows
        else ("nvidia-smi --query-compute-apps=pid,name,used_memory --format=csv", "sudo fuser -v /dev/nvidia*"),
        needs=() if windows else ("root",),
    )
    return (mode, end) if by_mode else (end, mode)
