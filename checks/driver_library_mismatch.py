"""The kernel module of the driver against its libraries."""

from collections.abc import Iterator

from gpudoctor.conclusions.error_codes import (
    NO_DEVICE,
    NVML_VERSION_MISMATCH,
    SYSTEM_DRIVER_MISMATCH,
    cuda_error,
    in_container,
    in_wsl,
    nvml_error,
)
from gpudoctor.conclusions.messages import reported
from gpudoctor.model import CupyRuntime, Driver, Finding, Remedy, Severity, Symptom, System, TorchRuntime
from gpudoctor.registry import Skip, check
from gpudoctor.remedies import reboot

# Symptoms of the kernel module and of TensorFlow that name both versions.
MISMATCH = ("nvrm-api-mismatch", "nvidia-api-mismatch", "tensorflow-version-mismatch")


@check(
    family="driver",
    explains=(
        "torch-cuda-unavailable",
        "cupy-unusable",
        "cuda-init-unknown-error-999",
        "driver-not-loaded",
        "driver-too-old",
        "container-nvml-lost",
        "fabric-manager-not-running",
    ),
)
def driver_library_mismatch(
    driver: Driver | None = None,
    system: System | None = None,
    torch_runtime: TorchRuntime | None = None,
    cupy_runtime: CupyRuntime | None = None,
    symptoms: tuple[Symptom, ...] | None = None,
) -> Iterator[Finding]:
    """The driver's libraries and the loaded kernel module are of different versions.

    Why: an upgrade, often an unattended one, replaced the libraries while the old module stayed in the kernel; they
    work only with each other, so NVML answers "Driver/library version mismatch" and CUDA fails with error 803. A reboot
    or a reload of the module mends it; nothing needs to be installed again.
    Exception: versions that differ while the driver answers pass, as with a second copy of libcuda. Error 803 with a
    libcuda of a forward compatibility package is `cuda-libs-conflict`.
    Reference: https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceEnumvs.html
    """
    said = (
        nvml_error(NVML_VERSION_MISMATCH, driver, symptoms)
        or next((fact for fact, _ in reported(symptoms, *MISMATCH)), None)
        or cuda_error(SYSTEM_DRIVER_MISMATCH, driver, torch_runtime, cupy_runtime, symptoms)
    )
    if not said:
        if driver is None:
            raise Skip("driver is unknown")
        if not _differ(driver):
            return
        unavailable = torch_runtime is not None and torch_runtime.available is False
        unavailable = unavailable or cuda_error(NO_DEVICE, driver, torch_runtime, symptoms=symptoms) is not None
        # A report in which the packages and the module are compared, and no program answers.
        unavailable = unavailable or (
            bool(reported(symptoms, "driver-packages-listed")) and driver.cuda_version is None
        )
        if driver.nvml_code is None and driver.cuda_init_code is None and not unavailable:
            raise Skip("driver.nvml_code is unknown")
        answered = driver.nvml_code == 0 or driver.cuda_init_code == 0
        if not (driver.nvml_code or driver.cuda_init_code or (unavailable and not answered)):
            return
    elif driver is not None and "compat" in (driver.libcuda_path or "") and not said.startswith("driver.nvml"):
        return
    differ = driver is not None and _differ(driver)
    yield Finding(
        severity=Severity.ERROR,
        summary=f"The kernel module is of driver {driver.module_version}, the libraries are of {driver.library_version}"
        if driver is not None and differ
        else "The driver's libraries and its loaded kernel module are of different versions",
        subject="NVIDIA driver",
        facts=(
            *((said,) if said else ()),
            *(("driver.module_version", "driver.library_version") if differ else ()),
        ),
        remedies=_remedies(system),
    )


def _differ(driver: Driver) -> bool:
    module, library = driver.module_version, driver.library_version
    return module is not None and library is not None and module != library


def _remedies(system: System | None) -> tuple[Remedy, ...]:
    if in_container(system):
        restart = Remedy(
            summary="Restart this container on its host, which then mounts the libraries of the loaded driver; if "
            "nvidia-smi fails on the host too, reboot the host first",
            commands=("docker restart CONTAINER",),
            needs=("restart",),
        )
        return (restart,)
    restart = reboot(system=system, summary="Reboot: the module of the installed driver is then loaded")
    if in_wsl(system) or (system is not None and system.os == "windows"):
        return (restart,)
    reload = Remedy(
        summary="Reload the kernel module without a reboot, where no desktop and no job uses the GPU",
        commands=(
            "sudo systemctl stop nvidia-persistenced",
            "sudo rmmod nvidia_drm nvidia_modeset nvidia_uvm nvidia",
            "sudo modprobe nvidia_uvm",
            "nvidia-smi",
        ),
        needs=("root",),
    )
    return (restart, reload)
