"""Features of a machine, from which next steps and possible causes are chosen."""

import re
from collections.abc import Collection, Iterable, Iterator

from gpudoctor.data.drivers import newest_cuda
from gpudoctor.data.torch_builds import torch_builds
from gpudoctor.model import (
    ComputeCapability,
    Container,
    CupyRuntime,
    Devices,
    Driver,
    DriverState,
    Gpu,
    Origin,
    Place,
    Pytorch,
    Symptom,
    System,
    VisibleDevices,
)
from gpudoctor.symptoms import Symptoms, of_kind, with_role
from gpudoctor.symptoms.named_gpus import capabilities

SYMPTOM = "symptom:"
GROUPS = ("about-", "place-", "asks-", "shown-")
UNUSED = {
    "asks:gpu-unused",
    "asks:cpu-used",
    "asks:tensorflow-list-empty",
    "asks:false-elsewhere",
    "asks:jax-cpu-listed",
}
UNRANKED = {
    "asks-trouble",
    "asks-but",
}  # kinds that distinguish a complaint from a question: the confirmed reports lack them
OTHERS = {  # programs that do not use PyTorch
    *("about:ollama", "about:llama-cpp", "about:lm-studio", "about:jax", "about:tensorflow", "about:onnxruntime"),
    *("about:numba", "about:rapids", "about:paddle", "about:xgboost", "symptom:cupy-named"),
}
OLDEST_BUILT = ComputeCapability(
    7, 5
)  # lowest compute capability of PyTorch's CUDA 13 builds. Source: gpudoctor/data/torch_builds.json
TURING, FIRST_WITH_BF16 = ComputeCapability(7, 5), ComputeCapability(8, 0)
NEWEST = ComputeCapability(10, 0)  # Blackwell: builds before PyTorch 2.7 have no kernels for it


def features(
    origin: Origin,
    system: System,
    place: Place,
    pytorch: Pytorch,
    gpu: Gpu,
    driver_state: DriverState,
    symptoms: Symptoms,
    cupy_runtime: CupyRuntime = CupyRuntime(),
    container: Container = Container(),
    driver: Driver = Driver(),
    visible_devices: VisibleDevices | None = None,
    devices: Devices = None,
) -> frozenset[str]:
    """Return the features: "os:windows", "place:docker", "about:ollama", "gpu:nvidia", "symptom:<kind>"."""
    kinds = {symptom.kind for symptom in symptoms or ()} - UNRANKED
    found = {k.replace("-", ":", 1) if k.startswith(GROUPS) else f"{SYMPTOM}{k}" for k in kinds}
    found |= set(_system(system, place))
    found |= set(_gpu(gpu, kinds)) | set(_generations(gpu, symptoms))
    if of_kind(symptoms, "@gpu-at-work") and not found & UNUSED:
        found.add("gpu:at-work")
    if container.gpus_requested:
        found.add("container:with-gpu")
    found |= set(_driver(driver, driver_state))
    choice = visible_devices.nvidia if visible_devices is not None else None
    if choice is not None and devices and len(choice.visible) == len(devices):
        found.add("devices:all-visible")
    if "apple-mac-named" in kinds and system.os is None:  # another system may be its guest
        found.add("os:darwin")
    if cupy_runtime.calls:
        found |= {"shown:cupy-config"} | ({"cupy:loads"} if cupy_runtime.first_error is None else set())
    if not origin.is_report:
        found.add("live")
    if pytorch.build:
        found.add(f"build:{pytorch.build}")
    if _has_kernels(pytorch, capabilities(gpu, symptoms)):
        found.add("build:has-kernels")
    found.add("error" if with_role(_program_messages(symptoms), "failure") else "no-error")
    if pytorch.installed or pytorch.available is not None:
        found.add("about:torch")
    if (found & OTHERS) and "about:torch" not in found and "about:torch-named" not in found:
        found.add("no-torch")
    if found & {"gpu:amd", "symptom:intel-gpu-named"} and "gpu:nvidia" not in found:
        found.add("no-nvidia")
    return frozenset(found)


def _has_kernels(pytorch: Pytorch, known: Collection[ComputeCapability]) -> bool:
    """Return whether the table has this build of PyTorch, with code for every named GPU."""
    version = pytorch.version
    builds = torch_builds(version.minor_release) if version is not None and known else ()
    return any(b.variant == version.local and all(map(b.runs_on, known)) for b in builds if version is not None)


def _driver(driver: Driver, state: DriverState) -> Iterator[str]:
    if state.works:
        yield "driver:works"
    if driver.module_loaded:
        yield "driver:loaded"
    if state.cuda_version is not None and state.cuda_version.major >= newest_cuda():
        yield "driver:newest"


def fits(features: frozenset[str], needed: Iterable[str], excluding: Iterable[str]) -> bool:
    """Return whether all needed features are present ("a|b" is either) and no excluding one is."""
    met = all(any(option in features for option in item.split("|")) for item in needed)
    return met and features.isdisjoint(excluding)


def _program_messages(symptoms: Symptoms) -> tuple[Symptom, ...]:
    """Return the symptoms that are program messages, not people's words."""
    return tuple(symptom for symptom in symptoms or () if not symptom.kind.startswith("asks-"))


def _generations(gpu: Gpu, symptoms: Symptoms) -> Iterator[str]:
    """Yield "gpu:old" for GPUs that new builds no longer support, "gpu:new" for GPUs that old builds do not know.

    "gpu:turing" and "gpu:bf16": all named GPUs are at least of that generation.
    """
    known = capabilities(gpu, symptoms)
    if any(capability < OLDEST_BUILT for capability in known):
        yield "gpu:old"
    if any(capability >= NEWEST for capability in known):
        yield "gpu:new"
    if known and min(known) >= TURING:
        yield "gpu:turing"
    if known and min(known) >= FIRST_WITH_BF16:
        yield "gpu:bf16"


def _system(system: System, place: Place) -> Iterator[str]:
    if place.in_wsl:
        yield "os:wsl"
    elif system.os:
        yield f"os:{system.os}"
    if place.about_container:
        yield "place:docker"
    if place.is_tegra:
        yield "place:jetson"


def _gpu(gpu: Gpu, kinds: Iterable[str]) -> Iterator[str]:
    if re.search(r"\b(?:[ABH][123]00|[AH]800|H20|GB?[23]00|V100)", gpu.present or ""):
        yield "gpu:datacenter"  # may be on a board with NVSwitches
    if gpu.present or "nvidia-gpu-named" in kinds or "nvidia-gpu-owned" in kinds:
        yield "gpu:nvidia"
    if "amd-gpu-named" in kinds or "amd-gpu-reported" in kinds:
        yield "gpu:amd"
