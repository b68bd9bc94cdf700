"""Which libraries of the driver a container was given."""

from collections.abc import Iterator

from gpudoctor.conclusions.containers import told_of_container
from gpudoctor.conclusions.error_codes import (
    NVML_LIBRARY_NOT_FOUND,
    gpu_nodes,
    in_wsl,
    no_driver_reported,
    nvml_error,
)
from gpudoctor.conclusions.messages import reported
from gpudoctor.model import (
    Container,
    Device,
    Driver,
    Environment,
    Finding,
    Remedy,
    Severity,
    Symptom,
    System,
    TorchRuntime,
)
from gpudoctor.registry import Skip, check, known, skip_unless
from gpudoctor.remedies import reserve_gpu_in_compose, start_container_with_gpu

VARIABLE = "NVIDIA_DRIVER_CAPABILITIES"
# Source: https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/docker-specialized.html
DEFAULT = "utility,compute"
# Libraries of the capability "video". Source: the same page.
VIDEO = "container-video-library"
# What a program prints that finds no libcuda.
NO_LIBCUDA = ("torch-no-driver", "libcuda-not-*", "cuda-no-device", "torch-no-gpus")


@check(
    family="container",
    explains=(
        "torch-cuda-unavailable",
        "cupy-unusable",
        "driver-missing",
        "libcuda-not-on-linker-path",
        "container-without-gpu",
        "wsl-driver-problem",
    ),
)
def driver_capabilities_missing(
    system: System | None = None,
    driver: Driver | None = None,
    environment: Environment | None = None,
    devices: tuple[Device, ...] | None = None,
    torch_runtime: TorchRuntime | None = None,
    container: Container | None = None,
    symptoms: tuple[Symptom, ...] | None = None,
) -> Iterator[Finding]:
    """The container has the GPU, but not all of the driver's libraries: compute or utility is left out.

    Why: NVIDIA_DRIVER_CAPABILITIES says which libraries the container runtime mounts: without "compute" there is no
    libcuda and CUDA fails although nvidia-smi works; without "utility" there is neither nvidia-smi nor NVML.
    Exception: unset means compute and utility. What works passes, as with CDI, which mounts every library.
    Reference: https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/docker-specialized.html
    """
    video = reported(symptoms, VIDEO) if told_of_container(system, container) else ()
    if video:
        yield _without_video(*video[0], system, container)
        return
    told = _told(torch_runtime, symptoms) or _without_cuda(system, container, torch_runtime, symptoms)
    if told:
        yield Finding(
            severity=Severity.ERROR,
            summary="nvidia-smi works in the container and CUDA does not: the container has the GPU but not libcuda "
            "(compute)",
            subject="container",
            facts=told,
            remedies=_remedies(system, container),
        )
        return
    system = known(system, "system")
    skip_unless(known(system.container, "system.container"), "this is not a container")
    skip_unless(not in_wsl(system), "WSL mounts every library of the driver")
    nodes = gpu_nodes(driver)
    if nodes == () and not devices:
        return
    value = environment.get(VARIABLE) if environment is not None else None
    granted = {name.strip() for name in (value or DEFAULT).lower().split(",")}
    no_compute = _missing_libcuda(driver, devices, torch_runtime, symptoms)
    if no_compute is None and not granted & {"compute", "all"} and not _cuda_works(driver):
        no_compute = f"environment.{VARIABLE}"
    no_utility = nvml_error(NVML_LIBRARY_NOT_FOUND, driver)
    if no_compute:
        severity, missing, fact = Severity.ERROR, "libcuda (compute)", no_compute
    elif no_utility and nodes:
        severity, missing, fact = Severity.WARNING, "NVML and nvidia-smi (utility)", no_utility
    else:
        if driver is None or (driver.libcuda_path is None and driver.cuda_init_code is None and value is None):
            raise Skip("driver.libcuda_path is unknown")
        return
    state = f"{VARIABLE}={value}" if value else f"{VARIABLE} is unset"
    yield Finding(
        severity=severity,
        summary=f"The container has the GPU but not {missing}: {state}",
        subject=f"{system.container} container",
        facts=(
            fact,
            *((f"environment.{VARIABLE}",) if value and not fact.startswith("environment") else ()),
            *(("driver.device_files",) if nodes else ()),
        ),
        remedies=_remedies(system, container),
    )


def _told(torch_runtime: TorchRuntime | None, symptoms: tuple[Symptom, ...] | None) -> tuple[str, ...]:
    """Return the facts of a report in which nvidia-smi works in the container and a program finds no driver."""
    works = reported(symptoms, "container-nvidia-smi-works")
    fails = reported(symptoms, *NO_LIBCUDA)
    failed = no_driver_reported(torch_runtime) or (fails[0][0] if fails else None)
    return (failed, works[0][0]) if works and failed else ()


def _without_cuda(
    system: System | None,
    container: Container | None,
    torch_runtime: TorchRuntime | None,
    symptoms: tuple[Symptom, ...] | None,
) -> tuple[str, ...]:
    """Return the message of an nvidia-smi in a container that finds the driver and no libcuda: CUDA Version N/A."""
    cuda_works = torch_runtime is not None and torch_runtime.available is True
    if cuda_works or not told_of_container(system, container) or in_wsl(system):
        return ()
    return tuple(path for path, _ in reported(symptoms, "nvidia-smi-without-cuda")[:1])


def _without_video(fact: str, message: Symptom, system: System | None, container: Container | None) -> Finding:
    library = message.names.get("library", "libnvcuvid.so.1")
    return Finding(
        severity=Severity.ERROR,
        summary=f"The container has no {library} of the driver: the capability video is left out",
        subject="container",
        facts=(fact,),
        remedies=_remedies(system, container, "compute,video,utility"),
    )


def _remedies(
    system: System | None, container: Container | None, granted: str = "compute,utility"
) -> tuple[Remedy, ...]:
    run = start_container_with_gpu(
        system=system,
        container=container,
        summary=f"Start the container with the capabilities {granted.replace(',', ' and ')}: {VARIABLE}={granted} and "
        "NVIDIA_VISIBLE_DEVICES=all",
        options=f"--gpus all -e {VARIABLE}={granted}",
    )
    compose = reserve_gpu_in_compose(capabilities=True)
    return (compose, run) if container is not None and container.compose else (run, compose)


def _cuda_works(driver: Driver | None) -> bool:
    return driver is not None and (driver.cuda_init_code == 0 or bool(driver.libcuda_path))


def _missing_libcuda(
    driver: Driver | None,
    devices: tuple[Device, ...] | None,
    torch_runtime: TorchRuntime | None,
    symptoms: tuple[Symptom, ...] | None,
) -> str | None:
    """Return the fact that shows a GPU without libcuda in this container."""
    has_gpu = bool(gpu_nodes(driver) or devices or (driver is not None and driver.version is not None))
    if not has_gpu or _cuda_works(driver):
        return None
    if driver is not None and driver.libcuda_path == "" and not driver.libcuda_files:
        return "driver.libcuda_path"
    if driver is not None and driver.libcuda_path is not None:
        return None
    told = reported(symptoms, "libcuda-not-*")
    return no_driver_reported(torch_runtime) or (told[0][0] if told else None)
