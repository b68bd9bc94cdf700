"""A container that was started without the GPU."""

from collections.abc import Iterator

from gpudoctor.model import Cupy, Device, Driver, Environment, Finding, Severity, System, Torch, TorchRuntime
from gpudoctor.reasoning.symptoms import (
    NVML_DRIVER_NOT_LOADED,
    NVML_LIBRARY_NOT_FOUND,
    asks_for_cuda,
    gpu_name,
    gpu_nodes,
    in_wsl,
    no_driver_reported,
    nvidia_gpus,
    nvml_error,
    works,
)
from gpudoctor.registry import Skip, applies, check, known
from gpudoctor.remedies import install_container_toolkit, start_container_with_gpu


@check(
    family="container",
    explains=(
        "torch-cuda-unavailable",
        "cupy-unusable",
        "no-nvidia-gpu",
        "driver-missing",
        "driver-not-loaded",
        "driver-too-old",
        "driver-capabilities-missing",
        "container-nvml-lost",
        "container-image-needs-newer-driver",
        "cuda-init-unknown-error-999",
        "cuda-visible-devices-hides-gpu",
        "libcuda-not-on-linker-path",
    ),
)
def container_without_gpu(
    system: System,
    driver: Driver | None = None,
    devices: tuple[Device, ...] | None = None,
    environment: Environment | None = None,
    torch: Torch | None = None,
    torch_runtime: TorchRuntime | None = None,
    cupy: Cupy | None = None,
) -> Iterator[Finding]:
    """The container was started without the GPU.

    Why: a container sees a GPU only where its engine hands it over, with the device nodes and the driver's libraries:
    `docker run --gpus all`, a device reservation of compose, a resource limit of Kubernetes.
    Exception: a host without an NVIDIA GPU on its PCI bus is `no-nvidia-gpu`. Where nothing in the container asks for
    CUDA this is advice.
    Reference: https://docs.docker.com/engine/containers/gpu/
    """
    applies(known(system.container, "system.container"), "this is not a container")
    if works(driver, devices) or (driver is not None and driver.nvml_code == 0):
        return
    gpus = nvidia_gpus(system)
    if gpus == () and not in_wsl(system):
        return
    nodes = gpu_nodes(driver)
    if nodes or (nodes is None and driver is not None and driver.libcuda_path):
        return
    reported = (
        no_driver_reported(torch_runtime)
        or nvml_error(NVML_LIBRARY_NOT_FOUND, driver)
        or nvml_error(NVML_DRIVER_NOT_LOADED, driver)
        or ("driver.installed" if driver is not None and driver.installed is False else None)
    )
    if nodes is None and not reported:
        raise Skip("driver.device_files is unknown")
    visible = environment.get("NVIDIA_VISIBLE_DEVICES") if environment is not None else None
    yield Finding(
        severity=_severity(asks_for_cuda(torch, cupy), certain=bool(gpus or visible or nodes is None)),
        summary=f"This {system.container} container has no device node of an NVIDIA GPU"
        f"{f', although its host has {gpu_name(gpus[0])}' if gpus else ''}"
        f"{f' (NVIDIA_VISIBLE_DEVICES={visible})' if visible in ('void', 'none', '') else ''}",
        subject=f"{system.container} container",
        facts=(
            "system.container",
            *(("driver.device_files",) if nodes is not None else ()),
            *((reported,) if reported else ()),
            *(("system.pci_gpus",) if gpus else ()),
        ),
        remedies=(start_container_with_gpu(system=system), install_container_toolkit(system=system)),
    )


def _severity(asked: bool | None, *, certain: bool) -> Severity:
    """Return the severity: whether the host has a GPU is not always visible from inside; a pasted report has one."""
    if asked is False:
        return Severity.INFO
    return Severity.ERROR if certain else Severity.WARNING
