"""An NVIDIA GPU without an NVIDIA driver."""

from collections.abc import Iterator

from gpudoctor.conclusions.error_codes import (
    NVML_LIBRARY_NOT_FOUND,
    gpu_name,
    in_container,
    in_wsl,
    no_driver_reported,
    nvidia_gpus,
    nvml_error,
    works,
)
from gpudoctor.conclusions.messages import reported
from gpudoctor.model import Device, Driver, Finding, Remedy, Severity, Symptom, System, TorchRuntime
from gpudoctor.registry import Skip, check, skip_unless
from gpudoctor.remedies import install_driver, start_container_with_gpu

NO_NVIDIA_SMI = "nvidia-smi-not-found"
# Symptoms that no machine without a driver prints.
ONLY_WITH_A_DRIVER = ("nvml-driver-not-loaded", "nvml-version-mismatch", "nvidia-smi-no-devices", "torch-no-gpus")


@check(
    family="driver",
    explains=(
        "torch-cuda-unavailable",
        "cupy-unusable",
        "libcuda-not-on-linker-path",
        "driver-not-loaded",
        "cuda-init-unknown-error-999",
        "cuda-visible-devices-hides-gpu",
        "nvidia-container-toolkit-missing",
    ),
)
def driver_missing(
    driver: Driver | None = None,
    system: System | None = None,
    devices: tuple[Device, ...] | None = None,
    torch_runtime: TorchRuntime | None = None,
    symptoms: tuple[Symptom, ...] | None = None,
) -> Iterator[Finding]:
    """No NVIDIA driver is installed on a machine with an NVIDIA GPU.

    Why: PyTorch and CuPy bring the CUDA libraries, but never the driver: without libcuda and its kernel module no CUDA
    call works ("Found no NVIDIA driver on your system").
    Exception: a machine without an NVIDIA GPU passes; inside a container and in WSL the driver belongs to the host,
    and other checks look after that.
    Reference: https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/
    """
    skip_unless(not in_container(system), "the driver of a container is its host's")
    skip_unless(not in_wsl(system), "the driver of WSL is that of Windows")
    skip_unless(system is None or system.os != "darwin", "macOS has no NVIDIA GPUs")
    skip_unless(system is None or not system.amd_gfx_targets, "the GPU is of AMD")
    skip_unless(system is None or "tegra" not in (system.kernel or ""), "a Jetson has its driver in its system")
    gpus = nvidia_gpus(system)
    if gpus == () or works(driver, devices):
        return
    if _installed(driver) or reported(symptoms, *ONLY_WITH_A_DRIVER):
        return
    said = _said(driver, torch_runtime, symptoms)
    certain = driver is not None and driver.installed is False
    if not said and not (certain and gpus):
        raise Skip("system.pci_gpus is unknown" if certain else "driver.installed is unknown")
    subject = gpu_name(gpus[0]) if gpus else "NVIDIA driver"
    yield Finding(
        # What computes on the GPU has its driver, wherever nvidia-smi is.
        severity=Severity.INFO if torch_runtime is not None and torch_runtime.available else Severity.ERROR,
        summary=f"{subject} is on the PCI bus, and no NVIDIA driver is installed" if gpus else _summary(said, symptoms),
        subject=subject,
        facts=(
            *(("driver.installed",) if certain else ()),
            *(("system.pci_gpus",) if gpus else ()),
            *((said,) if said else ()),
        ),
        remedies=_remedies(system, devices),
    )


def _said(
    driver: Driver | None, torch_runtime: TorchRuntime | None, symptoms: tuple[Symptom, ...] | None
) -> str | None:
    """Return the name of the fact in which a program misses the driver."""
    library = nvml_error(NVML_LIBRARY_NOT_FOUND, driver, symptoms)
    commands = reported(symptoms, NO_NVIDIA_SMI)
    return no_driver_reported(torch_runtime, symptoms) or library or (commands[0][0] if commands else None)


def _summary(said: str | None, symptoms: tuple[Symptom, ...] | None) -> str:
    if said in [fact for fact, _ in reported(symptoms, NO_NVIDIA_SMI)]:
        return "There is no nvidia-smi, which comes with every NVIDIA driver: no driver is installed, or not for here"
    return "No NVIDIA driver is found on this machine: libcuda cannot be loaded"


def _remedies(system: System | None, devices: tuple[Device, ...] | None) -> tuple[Remedy, ...]:
    install = install_driver(system=system, devices=devices)
    if system is not None and system.container is not None:
        return (install,)
    # A pasted message does not tell where it was printed, nor whether there is a GPU.
    look = Remedy(
        summary="Look whether the machine has an NVIDIA GPU; without one, use a build for the CPU or another machine",
        commands=("wmic path win32_VideoController get name",)
        if system is not None and system.os == "windows"
        else ("lspci | grep -i nvidia",),
    )
    in_container = start_container_with_gpu(
        system=system, summary="If that was inside a container, start it again with --gpus all"
    )
    return (install, in_container, look)


def _installed(driver: Driver | None) -> bool:
    """Return whether anything of a driver is known to be there."""
    if driver is None:
        return False
    traces = (driver.installed, driver.version, driver.module_loaded, driver.libcuda_path, driver.library_version)
    return any(traces)
