"""An NVIDIA GPU without an NVIDIA driver."""

from collections.abc import Iterator

from gpudoctor.model import Device, Driver, Finding, Remedy, Severity, System, TorchRuntime
from gpudoctor.reasoning.symptoms import (
    NVML_LIBRARY_NOT_FOUND,
    gpu_name,
    in_container,
    in_wsl,
    no_driver_reported,
    nvidia_gpus,
    nvml_error,
    works,
)
from gpudoctor.registry import Skip, applies, check
from gpudoctor.remedies import install_driver, start_container_with_gpu


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
) -> Iterator[Finding]:
    """No NVIDIA driver is installed on a machine with an NVIDIA GPU.

    Why: PyTorch and CuPy bring the CUDA libraries, but never the driver: without libcuda and its kernel module no CUDA
    call works ("Found no NVIDIA driver on your system").
    Exception: a machine without an NVIDIA GPU passes; inside a container and in WSL the driver belongs to the host,
    and other checks look after that.
    Reference: https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/
    """
    applies(not in_container(system), "the driver of a container is its host's")
    applies(not in_wsl(system), "the driver of WSL is that of Windows")
    gpus = nvidia_gpus(system)
    if gpus == () or works(driver, devices):
        return
    reported = no_driver_reported(torch_runtime) or nvml_error(NVML_LIBRARY_NOT_FOUND, driver)
    if _installed(driver):
        return
    certain = driver is not None and driver.installed is False
    if not reported and not (certain and gpus):
        raise Skip("system.pci_gpus is unknown" if certain else "driver.installed is unknown")
    subject = gpu_name(gpus[0]) if gpus else "NVIDIA driver"
    yield Finding(
        severity=Severity.ERROR,
        summary=f"{subject} is on the PCI bus, and no NVIDIA driver is installed"
        if gpus
        else "No NVIDIA driver is found on this machine: libcuda cannot be loaded",
        subject=subject,
        facts=(
            *(("driver.installed",) if certain else ()),
            *(("system.pci_gpus",) if gpus else ()),
            *((reported,) if reported else ()),
        ),
        remedies=_remedies(system, devices),
    )


def _remedies(system: System | None, devices: tuple[Device, ...] | None) -> tuple[Remedy, ...]:
    install = install_driver(system=system, devices=devices)
    if system is not None and system.container is not None:
        return (install,)
    # A pasted message does not tell where it was printed.
    in_container = start_container_with_gpu(
        system=system, summary="If that was inside a container, start it again with --gpus all"
    )
    return (install, in_container)


def _installed(driver: Driver | None) -> bool:
    """Return whether anything of a driver is known to be there."""
    if driver is None:
        return False
    traces = (driver.installed, driver.version, driver.module_loaded, driver.libcuda_path, driver.library_version)
    return any(traces)
