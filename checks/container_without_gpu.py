"""A container that was started without the GPU."""

from collections.abc import Iterator

from gpudoctor.model import Consumers, ContainerGpu, Environment, Finding, Fix, Place, Severity, System
from gpudoctor.registry import CUDA_FAILS, DRIVER_FAILS, Skip, check, known, skip_unless
from gpudoctor.symptoms import Symptoms
from gpudoctor.symptoms.answers import answers


@check(
    family="container",
    explains=(
        *(*CUDA_FAILS, *DRIVER_FAILS, "no-nvidia-gpu", "driver-capabilities-missing", "container-nvml-lost"),
        *("container-image-needs-newer-driver", "cuda-visible-devices-hides-gpu", "libcuda-not-on-linker-path"),
        "wsl-driver-problem",
    ),
)
def container_without_gpu(
    container_gpu: ContainerGpu,
    consumers: Consumers,
    place: Place,
    system: System = System(),
    environment: Environment = Environment(),
    symptoms: Symptoms = None,
) -> Iterator[Finding]:
    """The container was started without the GPU.

    Why: a container sees a GPU only if its engine gives it one, with the device nodes and the driver's libraries:
    `docker run --gpus all`, a compose device reservation, a Kubernetes resource limit.
    Exception: a host without an NVIDIA GPU on its PCI bus is `no-nvidia-gpu`. If nothing in the container asks for
    CUDA, this is advice. In a report nvidia-smi may be from the host, so the message from the container counts.
    container-setup-without-gpu checks containers from outside.
    Reference: https://docs.docker.com/engine/containers/gpu/
    """
    if answered := answers(symptoms, "container-without-gpu"):
        yield answered[0]
        return
    if how := container_gpu.without:
        yield Finding.error("container", how, container_gpu.without_facts, Fix("start-container-in-its-way-with-gpu"))
        return
    skip_unless(known(system.container, "system.container"), "this is not a container")
    gpus = system.nvidia_gpus
    if container_gpu.present or (gpus == () and not place.in_wsl):
        return
    if container_gpu.present is None:
        raise Skip("driver.device_files is unknown")
    visible = environment.get("NVIDIA_VISIBLE_DEVICES")
    has_nodes = container_gpu.nodes is not None
    # Whether the host has a GPU is not always visible from inside; a report is of a machine with one.
    certain = bool(gpus or visible or not has_nodes)
    severity = Severity.ERROR if certain else Severity.WARNING
    yield Finding.of(
        Severity.INFO if consumers.ask_for_cuda is False else severity,
        f"{system.container} container",
        f"This {system.container} container has no NVIDIA device node"
        f"{f', although the GPU of its host is {gpus[0].label}' if gpus else ''}"
        f"{f' (NVIDIA_VISIBLE_DEVICES={visible})' if visible in ('void', 'none', '') else ''}",
        (
            "system.container",
            "driver.device_files" if has_nodes else "",
            container_gpu.no_driver,
            "system.pci_gpus" if gpus else "",
        ),
        Fix("start-container-in-its-way-with-gpu"),
    )
