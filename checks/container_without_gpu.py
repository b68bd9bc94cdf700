"""A container that was started without the GPU."""

from collections.abc import Iterator

from gpudoctor.conclusions.containers import gpus_left_out, told_of_container
from gpudoctor.conclusions.error_codes import (
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
from gpudoctor.conclusions.messages import reported
from gpudoctor.model import (
    Container,
    Cupy,
    Device,
    Driver,
    Environment,
    Finding,
    Origin,
    Remedy,
    Severity,
    Symptom,
    System,
    Torch,
    TorchRuntime,
)
from gpudoctor.registry import Skip, check, known, skip_unless
from gpudoctor.remedies import install_container_toolkit, reserve_gpu_in_compose, start_container_with_gpu

# What each message tells by itself. Source: the table of failure messages.
TOLD = {
    "container-ngc-no-driver": "The container was started without the GPU: its image finds no NVIDIA driver",
    "container-compose-too-old": "This Compose, or the version that its file names, cannot ask for a GPU",
    "container-unknown-device": "The container asks for a GPU that its host does not have",
    "container-gpus-quoted": "The option --gpus is written in a way that the engine takes for something else",
    "container-nv-no-files": "The host has no NVIDIA driver that --nv could hand over to the container",
}
DEVICES = "docker run --rm --gpus '\"device=0,1\"' ubuntu nvidia-smi"
# What programs in a container without the GPU print besides "Found no NVIDIA driver".
WITHOUT_DRIVER = (
    *(
        "libcuda-not-*",
        "nvidia-smi-not-found",
        "container-nvidia-smi-fails",
        "container-nvidia-smi-missing",
        "nvml-library-not-found",
        "torch-no-gpus",
        "cuda-no-device",
    ),
    "ollama-no-gpus",
)

# Those of them that a container with the GPU does not print: its runtime brings nvidia-smi.
ONLY_WITHOUT_GPU = (
    *("nvidia-smi-not-found", "container-nvidia-smi-fails", "container-nvidia-smi-missing"),
    "nvml-library-not-found",
)

# What tells of a GPU that the container had, or that something in it hides.
LOST_LATER = (
    "nvml-*",
    "container-nvml-*",
    "container-worked-before",
    "cuda-visible-devices",
    "mig-*",
    "gpu-is-lost",
    "nvrm-*",
)


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
        "wsl-driver-problem",
    ),
)
def container_without_gpu(
    origin: Origin,
    system: System | None = None,
    driver: Driver | None = None,
    devices: tuple[Device, ...] | None = None,
    environment: Environment | None = None,
    torch: Torch | None = None,
    torch_runtime: TorchRuntime | None = None,
    cupy: Cupy | None = None,
    container: Container | None = None,
    symptoms: tuple[Symptom, ...] | None = None,
) -> Iterator[Finding]:
    """The container was started without the GPU.

    Why: a container sees a GPU only where its engine hands it over, with the device nodes and the driver's libraries:
    `docker run --gpus all`, a device reservation of compose, a resource limit of Kubernetes.
    Exception: a host without an NVIDIA GPU on its PCI bus is `no-nvidia-gpu`. Where nothing in the container asks for
    CUDA this is advice. In a report nvidia-smi may be that of the host, so that the message of the container counts.
    Reference: https://docs.docker.com/engine/containers/gpu/
    """
    host_answers = driver is not None and driver.version is not None
    told = _told(
        system, container, torch, torch_runtime, symptoms, is_report=origin.is_report, host_answers=host_answers
    )
    if told is not None:
        summary, facts = told
        yield Finding(
            severity=Severity.ERROR,
            summary=summary,
            subject="container",
            facts=facts,
            remedies=(*_for_message(symptoms), *_remedies(system, container)),
        )
        return
    system = known(system, "system")
    skip_unless(known(system.container, "system.container"), "this is not a container")
    if works(driver, devices) or (driver is not None and driver.nvml_code == 0):
        return
    gpus = nvidia_gpus(system)
    if gpus == () and not in_wsl(system):
        return
    nodes = gpu_nodes(driver)
    if nodes or (nodes is None and driver is not None and driver.libcuda_path):
        return
    failure = (
        no_driver_reported(torch_runtime)
        or nvml_error(NVML_LIBRARY_NOT_FOUND, driver)
        or nvml_error(NVML_DRIVER_NOT_LOADED, driver)
        or ("driver.installed" if driver is not None and driver.installed is False else None)
    )
    if failure is None:
        # The runtime puts nvidia-smi and libcuda into a container that has the GPU.
        failure = next((path for path, _ in reported(symptoms, "nvidia-smi-not-found", "libcuda-not-*")), None)
    if nodes is None and not failure:
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
            *((failure,) if failure else ()),
            *(("system.pci_gpus",) if gpus else ()),
        ),
        remedies=_remedies(system, container),
    )


def _told(
    system: System | None,
    container: Container | None,
    torch: Torch | None,
    torch_runtime: TorchRuntime | None,
    symptoms: tuple[Symptom, ...] | None,
    *,
    is_report: bool,
    host_answers: bool,
) -> tuple[str, tuple[str, ...]] | None:
    """Return what a report tells of a container without the GPU, and the facts that it stands in.

    host_answers: the report shows a driver; beside a program that finds no GPU it is that of the host.
    """
    for kind, text in TOLD.items():
        for fact, message in reported(symptoms, kind):
            device = message.names.get("device")
            return f"{text}{f': {device}' if device else ''}", (fact,)
    if not is_report or not told_of_container(system, container) or reported(symptoms, "container-nvidia-smi-works"):
        return None
    if torch is not None and torch.build in ("cpu", "rocm"):
        return None
    failed = no_driver_reported(torch_runtime)
    left_out = gpus_left_out(container)
    others = reported(symptoms, *_without_driver(container, left_out))
    if not others and not reported(symptoms, *LOST_LATER):
        others = reported(symptoms, "ollama-no-gpus", *(("torch-no-gpus",) if host_answers else ()))
    failed = failed or (others[0][0] if others else None)
    if failed is None and left_out and torch_runtime is not None and torch_runtime.available is False:
        failed = "torch_runtime.available"
    asked = container is not None and container.gpus_requested
    if failed is None or asked or (left_out is None and system is not None and system.container):
        return None
    lacks = "sees no GPU" if others and others[0][1].kind.endswith("-no-gpus") else "has no NVIDIA driver"
    how = "was started without the GPU" if left_out else f"{lacks}: it was started without the GPU"
    image = f" of {container.image}" if container is not None and container.image else ""
    return f"The container{image} {how}", (failed, *((left_out,) if left_out else ()))


def _for_message(symptoms: tuple[Symptom, ...] | None) -> tuple[Remedy, ...]:
    """Return what one of the messages asks for by itself."""
    if reported(symptoms, "container-gpus-quoted"):
        return (
            Remedy(
                summary="Write the option and its value as two words of their own, --gpus all, in a list of arguments "
                '"--gpus", "all" (runArgs of devcontainer.json); several devices need quotes within quotes',
                commands=("docker run --rm --gpus all ubuntu nvidia-smi", DEVICES),
                reference="https://docs.docker.com/engine/containers/gpu/",
            ),
        )
    if reported(symptoms, "container-nv-no-files"):
        return (
            Remedy(
                summary="See whether nvidia-smi works on the host itself: a login node of a cluster has no GPU (start "
                "the container in a job that asks for one), a Jetson needs its folders bound by hand",
                commands=("nvidia-smi", "srun --gres=gpu:1 singularity exec --nv IMAGE nvidia-smi"),
                reference="https://apptainer.org/docs/user/main/gpu.html",
            ),
        )
    return ()


def _without_driver(container: Container | None, left_out: str | None) -> tuple[str, ...]:
    """Return the messages that show a container without the GPU, by what is known of how it was started."""
    if left_out or (container is not None and container.engine == "kubernetes"):
        return WITHOUT_DRIVER
    known = container is not None and (container.engine or container.image_cuda_version is not None)
    return ONLY_WITHOUT_GPU if known else ()


def _remedies(system: System | None, container: Container | None) -> tuple[Remedy, ...]:
    """Return the remedies, that of the way in which the container was started first."""
    run = start_container_with_gpu(system=system, container=container)
    compose = reserve_gpu_in_compose(capabilities=True)
    toolkit = install_container_toolkit(system=system)
    if container is not None and container.compose:
        return (compose, run, toolkit)
    if container is None or container.engine in (None, "docker"):
        return (run, toolkit, compose)
    return (run, toolkit)


def _severity(asked: bool | None, *, certain: bool) -> Severity:
    """Return the severity: whether the host has a GPU is not always visible from inside; a pasted report has one."""
    if asked is False:
        return Severity.INFO
    return Severity.ERROR if certain else Severity.WARNING
