"""CUDA's initialisation fails without saying why."""

from collections.abc import Iterator

from gpudoctor.conclusions.error_codes import OPERATING_SYSTEM, UNKNOWN_ERROR, cuda_error, in_container, in_wsl
from gpudoctor.conclusions.messages import reported as told
from gpudoctor.model import CupyRuntime, Driver, Finding, Remedy, Severity, Symptom, System, TorchRuntime
from gpudoctor.registry import Skip, check, skip_unless
from gpudoctor.remedies import reboot

FAILED_CALL = "error 304, a call of the operating system failed"
SUSPEND_OPTION = "options nvidia NVreg_PreserveVideoMemoryAllocations=1"


@check(family="driver", explains=("torch-cuda-unavailable", "cupy-unusable"))
def cuda_init_unknown_error_999(
    driver: Driver | None = None,
    torch_runtime: TorchRuntime | None = None,
    cupy_runtime: CupyRuntime | None = None,
    system: System | None = None,
    symptoms: tuple[Symptom, ...] | None = None,
) -> Iterator[Finding]:
    """CUDA fails to initialise with the unknown error 999.

    Why: the kernel module nvidia_uvm, which manages CUDA's memory, is not loaded, has no device node or did not survive
    a suspend; nvidia-smi works all the same, for it does not use that module. PyTorch calls it "CUDA unknown error".
    Error 304, a failed call of the operating system, has the same reasons.
    Exception: other results of cuInit, such as 803 or 100, have checks of their own.
    Reference: https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__TYPES.html
    """
    unknown = cuda_error(UNKNOWN_ERROR, driver, torch_runtime, cupy_runtime, symptoms)
    reported = unknown or cuda_error(OPERATING_SYSTEM, driver, torch_runtime, cupy_runtime, symptoms)
    if not reported:
        skip_unless(not told(symptoms, "*"), "no such message in the report")
        if (driver is None or driver.cuda_init_code is None) and torch_runtime is None and cupy_runtime is None:
            raise Skip("driver.cuda_init_code is unknown")
        return
    reason, facts = _reason(None if in_wsl(system) else driver)
    slept = told(symptoms, "cuda-lost-after-suspend", "cuda-fails-beside-suspend")
    failed = f"CUDA cannot be initialised: {'error 999, unknown' if unknown else FAILED_CALL}"
    yield Finding(
        severity=Severity.ERROR,
        summary=f"{'CUDA fails once the machine has slept' if slept else failed}{reason}",
        subject="cuInit",
        facts=(reported, *facts),
        remedies=_remedies(system, driver),
    )


def _reason(driver: Driver | None) -> tuple[str, tuple[str, ...]]:
    """Return what is wrong with nvidia-uvm, as the end of a sentence, and the facts that say so."""
    if driver is None:
        return "", ()
    if driver.uvm_loaded is False:
        return "; the kernel module nvidia_uvm is not loaded", ("driver.uvm_loaded",)
    for number, node in enumerate(driver.device_files or ()):
        if node.path == "/dev/nvidia-uvm":
            if node.accessible is False:
                return f"; {node.path} cannot be opened", (f"driver.device_files[{number}].error",)
            return "", ()
    if driver.device_files:
        return "; the device node /dev/nvidia-uvm is missing", ("driver.device_files",)
    return "", ()


def _remedies(system: System | None, driver: Driver | None) -> tuple[Remedy, ...]:
    restart = reboot(system=system, summary="Reboot, where that does not help")
    if in_wsl(system) or (system is not None and system.os == "windows"):
        return (restart,)
    if in_container(system):
        host = Remedy(
            summary="On the container's host create the device nodes of nvidia_uvm, then start the container anew",
            commands=("sudo nvidia-modprobe -u -c=0", "docker restart CONTAINER"),
            needs=("root", "restart"),
        )
        return (host,)
    missing = driver is not None and driver.uvm_loaded is False
    commands = ("sudo modprobe nvidia_uvm",) if missing else ("sudo rmmod nvidia_uvm", "sudo modprobe nvidia_uvm")
    reload = Remedy(
        summary="Load the kernel module nvidia_uvm and create its device nodes"
        if missing
        else "Reload the kernel module nvidia_uvm, with every program that uses the GPU ended",
        commands=(*commands, "sudo nvidia-modprobe -u -c=0", "gpudoctor check"),
        needs=("root",),
    )
    suspend = Remedy(
        summary="Where it comes back after every suspend, let the driver save its memory",
        commands=(
            f"echo '{SUSPEND_OPTION}' | sudo tee /etc/modprobe.d/nvidia-power-management.conf",
            "sudo systemctl enable nvidia-suspend.service nvidia-hibernate.service nvidia-resume.service",
        ),
        needs=("root", "reboot"),
        reference="https://download.nvidia.com/XFree86/Linux-x86_64/580.95.05/README/powermanagement.html",
    )
    return (reload, restart, suspend)
