"""Whether this container has the GPU and the driver libraries."""

import re

from gpudoctor.model import ContainerGpu, Devices, Driver, DriverState, Origin, Place, Pytorch, Symptom, System
from gpudoctor.model.software import Container
from gpudoctor.symptoms import Symptoms, first, of_kind, with_code

# Never printed in a container with the GPU, whose runtime adds nvidia-smi.
SMI_MISSING = ("nvidia-smi-not-found", "container-nvidia-smi-fails", "container-nvidia-smi-missing")
ONLY_WITHOUT_GPU = (*SMI_MISSING, "nvml-library-not-found")
# Messages of programs that do not find libcuda.
_FOR_GPU = re.compile(r"\b(?:nvidia|cuda|gpu)\b")
NO_LIBCUDA = ("torch-no-driver", "libcuda-not-*", "cuda-no-device", "torch-no-gpus")


def container_gpu(
    origin: Origin,
    place: Place,
    pytorch: Pytorch,
    driver_state: DriverState,
    container: Container,
    driver: Driver,
    devices: Devices,
    system: System,
    symptoms: Symptoms,
) -> ContainerGpu:
    """Return whether the container has the GPU, from its device nodes, the driver and program messages."""
    no_driver = _no_driver(driver, symptoms)
    is_shown = origin.is_report and place.about_container
    without, facts = _without(container, pytorch, driver, system, symptoms) if is_shown else ("", ())
    smi_alone = _smi_alone(symptoms)
    if not smi_alone and pytorch.available is not True and place.about_container and not place.in_wsl:
        smi_alone = tuple(symptom.fact for symptom in of_kind(symptoms, "nvidia-smi-without-cuda")[:1])
    return ContainerGpu(
        image=container.image or "",
        present=_is_present(driver, driver_state, no_driver),
        nodes=driver.gpu_nodes,
        no_driver=no_driver,
        no_libcuda="" if without else _no_libcuda(driver, devices, symptoms),
        no_nvml=_fact(with_code(symptoms, "nvml-12")),
        without=without,
        without_facts=facts,
        smi_alone=smi_alone,
    )


def _fact(symptoms: tuple[Symptom, ...]) -> str:
    return symptoms[0].fact if symptoms else ""


def _no_driver(driver: Driver, symptoms: Symptoms) -> str:
    """Return the evidence for a missing driver: the runtime adds nvidia-smi and libcuda together with the GPU."""
    said = of_kind(symptoms, "torch-no-driver") or with_code(symptoms, "nvml-12") or with_code(symptoms, "nvml-9")
    if not said and driver.installed is False:
        return "driver.installed"
    return _fact(said or of_kind(symptoms, "nvidia-smi-not-found", "libcuda-not-*"))


def _is_present(driver: Driver, driver_state: DriverState, no_driver: str) -> bool | None:
    nodes = driver.gpu_nodes
    if driver_state.works or driver.nvml_code == 0 or nodes or (nodes is None and driver.libcuda_path):
        return True
    return None if nodes is None and not no_driver else False


def _without(
    container: Container, pytorch: Pytorch, driver: Driver, system: System, symptoms: Symptoms
) -> tuple[str, tuple[str, ...]]:
    """Return how a report shows that the container was started without the GPU, and its facts.

    A driver in the report is the host's if a program in the container finds no GPU.
    """
    left_out = container.gpus_requested is False
    if of_kind(symptoms, "container-nvml-unknown-error") or with_code(symptoms, "cuda-804"):
        return "", ()  # NVML, or a driver, is there, so that the container had the GPU
    is_marked = bool(system.container)
    if container.gpus_requested or (is_marked and not left_out):
        return "", ()
    if pytorch.build_read in ("cpu", "rocm") or of_kind(
        symptoms, "container-nvidia-smi-works", "no-nvidia-gpu-reported"
    ):
        return "", ()
    others_gpu = of_kind(symptoms, "amd-gpu-*", "rocm-*", "apple-mac-named")
    unused = ("@container-computes-on-cpu",) if left_out and not others_gpu else ()
    others = of_kind(symptoms, *_kinds_without_driver(container), *unused)
    if not others and not of_kind(symptoms, "@container-lost-gpu"):
        others = of_kind(symptoms, "ollama-no-gpus", *(("torch-no-gpus",) if driver.version is not None else ()))
    failed = _fact(of_kind(symptoms, "torch-no-driver") or others)
    if not failed and left_out and pytorch.available is False:
        failed = "torch_runtime.available"
    if not failed:
        return "", ()
    lacks = "sees no GPU" if others and others[0].kind.endswith("-no-gpus") else "has no NVIDIA driver"
    how = "was started without the GPU" if left_out else f"{lacks}: it was started without the GPU"
    name = f" of {container.image}" if container.image else ""
    return f"The container{name} {how}", (failed, *(("container.gpus_requested",) if left_out else ()))


def _kinds_without_driver(container: Container) -> tuple[str, ...]:
    """Return the symptoms of a container without the GPU, depending on how it was started."""
    if container.gpus_requested is False:
        return "@container-without-driver", "cuda-insufficient-driver"
    if container.engine == "kubernetes":
        return ("@container-without-driver",)
    if _FOR_GPU.search(container.image or ""):
        return *ONLY_WITHOUT_GPU, "libcuda-not-found"
    return ONLY_WITHOUT_GPU if container.engine or container.image_cuda_version is not None else ()


def _smi_alone(symptoms: Symptoms) -> tuple[str, ...]:
    """Return the evidence that nvidia-smi works in the container but a program finds no driver."""
    works = first(of_kind(symptoms, "container-nvidia-smi-works"))
    fails = first(of_kind(symptoms, *NO_LIBCUDA))
    return (fails.fact, works.fact) if works is not None and fails is not None else ()


def _no_libcuda(driver: Driver, devices: Devices, symptoms: Symptoms) -> str:
    """Return the evidence for a GPU without libcuda."""
    has_gpu = bool(driver.gpu_nodes or devices or driver.version is not None)
    if not has_gpu or driver.cuda_init_code == 0 or driver.libcuda_path:
        return ""
    if driver.libcuda_path is not None:
        return "" if driver.libcuda_files else "driver.libcuda_path"
    return _fact(of_kind(symptoms, "torch-no-driver") or of_kind(symptoms, "libcuda-not-*"))
