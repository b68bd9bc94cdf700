"""Containers seen from outside: whether one gets the GPU, whether it wants it, and what failed in it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from gpudoctor.conclusions.error_codes import nvidia_gpus
from gpudoctor.model import ContainerEngine, Containers, ContainerSetup, CudaVersion, Device, Finding, Symptom, System
from gpudoctor.symptoms import of_kind

CDI_KIND = "nvidia.com/"
NO_DEVICES = ("", "void", "none")
"""Values of NVIDIA_VISIBLE_DEVICES that give no GPU. Source: NVIDIA Container Toolkit, "Specialized Configurations"."""

HIDDEN = ("", "-1")
# Images whose name tells that they are for GPUs: nvidia/cuda:13.0.1-base, nvcr.io/nvidia/pytorch:25.10-py3.
_CUDA_IMAGE = r"(?:^|/)nvidia/cuda|^nvcr\.io/nvidia/|:[\w.-]*(?:cuda|cu1[1-9])\d*"
_CUDA_OF_NAME = r"(?:(?:^|/)(?:cuda|cuda-gl|cudagl):|:[\w.-]*?cuda-?)(\d{1,2}\.\d{1,2})(?:\.\d+)?(?:[-_]|@|$)"


def each(containers: Containers | None) -> Iterator[tuple[str, ContainerSetup]]:
    """Yield each setup with the path of its facts: "containers.setups[0]"."""
    for number, setup in enumerate(containers.setups if containers is not None else ()):
        yield f"containers.setups[{number}]", setup


def engine_of(containers: Containers | None) -> ContainerEngine:
    """Return the engine; one of which nothing is known where it could not be asked."""
    return (containers.engine if containers is not None else None) or ContainerEngine()


def gpu_way(setup: ContainerSetup, engine: ContainerEngine) -> str | None:
    """Return how the container gets the GPU, "" where it does not, None where that cannot be told.

    "cdi"; "request" (--gpus, a reservation); "devices" (device nodes named one by one); "runtime" (the runtime nvidia).
    """
    if any(name.startswith(CDI_KIND) for request in setup.gpu_requests or () for name in request.device_ids):
        return "cdi"
    for request in setup.gpu_requests or ():
        if (request.driver == "nvidia" or "gpu" in request.capabilities) and (request.count or request.device_ids):
            return "request"
    if any(re.match(r"/dev/(?:nvidia|dxg)", path) for path in setup.device_files or ()):
        return "devices"
    if has_nvidia_runtime(setup, engine) and visible_devices(setup) not in NO_DEVICES:
        return "runtime"
    if setup.gpu_requests is None or setup.is_privileged:
        return None  # a privileged container has the devices; the libraries may be mounted by hand
    if not setup.runtime and engine.default_runtime is None:
        return None
    return ""


def has_nvidia_runtime(setup: ContainerSetup, engine: ContainerEngine) -> bool:
    """Return whether NVIDIA's runtime starts it, by its own choice or by the engine's default."""
    return (setup.runtime or engine.default_runtime or "").startswith("nvidia")


def visible_devices(setup: ContainerSetup) -> str:
    """Return NVIDIA_VISIBLE_DEVICES; "" where it is unset, which gives no GPU except to CUDA images of old."""
    is_old = "CUDA_VERSION" in setup.environment and "NVIDIA_REQUIRE_CUDA" not in setup.environment
    return setup.environment.get("NVIDIA_VISIBLE_DEVICES", "all" if is_old else "")


def gpu_wish(setup: ContainerSetup) -> tuple[str, str] | None:
    """Return the fact that shows that it is meant to use the GPU, with its words; None where nothing does."""
    of_image = setup.image_environment or {}
    if "CUDA_VERSION" in of_image or "NVIDIA_REQUIRE_CUDA" in of_image:
        version = of_image.get("CUDA_VERSION")
        return "image_environment", f"its image is one for CUDA{f' {version[:20]}' if version else ''}"
    if of_image.get("NVIDIA_VISIBLE_DEVICES", "void") not in NO_DEVICES:
        return "image_environment", "its image asks for GPUs (NVIDIA_VISIBLE_DEVICES)"
    for fact, name in (("image", setup.image), ("base", setup.base)):
        if name and re.search(_CUDA_IMAGE, name):
            return fact, f"its image {'is' if fact == 'image' else 'is built from'} {name[:100]}"
    if setup.environment.get("NVIDIA_VISIBLE_DEVICES", "void") not in NO_DEVICES:
        return "environment", "it sets NVIDIA_VISIBLE_DEVICES"
    if setup.torch is not None and setup.torch.build == "cuda":
        return "torch", f"PyTorch {setup.torch.version} in it is built for CUDA"
    return None


def gives_up_gpu(setup: ContainerSetup) -> bool:
    """Return whether it says itself that it wants no GPU."""
    own = {name: text for name, text in setup.environment.items() if (setup.image_environment or {}).get(name) != text}
    return own.get("CUDA_VISIBLE_DEVICES", "0") in HIDDEN or own.get("NVIDIA_VISIBLE_DEVICES", "all") in NO_DEVICES


def cuda_of_image_name(name: str | None) -> CudaVersion | None:
    """Return the CUDA version in an image's name: nvidia/cuda:12.2.2-devel, pytorch:2.1.0-cuda11.8-cudnn8."""
    match = re.search(_CUDA_OF_NAME, name or "")
    return CudaVersion.parse(match[1]) if match else None


def host_has_gpu(devices: tuple[Device, ...] | None, system: System | None, engine: ContainerEngine) -> bool | None:
    """Return whether the machine of the engine has an NVIDIA GPU; None where that is not known."""
    if engine.is_local is False:
        return None
    if devices or nvidia_gpus(system):
        return True
    return False if devices == () or nvidia_gpus(system) == () else None


def failed_with(path: str, setup: ContainerSetup, *kinds: str) -> tuple[tuple[str, Symptom], ...]:
    """Return the fact and the symptom of each failure of these kinds."""
    facts = {id(failure): f"{path}.failures[{number}].text" for number, failure in enumerate(setup.failures)}
    return tuple((facts[id(failure)], failure) for failure in of_kind(setup.failures, *kinds))


def named(setup: ContainerSetup) -> str:
    """Return its kind and name, for a sentence."""
    return f"{setup.kind} {setup.name[:100]}"


def each_once(found: Iterable[tuple[ContainerSetup, Finding]]) -> Iterator[Finding]:
    """Yield the findings; of a service and its containers, that of the service, where it is to be mended."""
    services: set[str] = set()
    for setup, finding in found:
        if setup.kind == "container" and setup.service in services:
            continue
        if setup.service:
            services.add(setup.service)
        yield finding


def each_image_once(found: Iterable[tuple[ContainerSetup, Finding]]) -> Iterator[Finding]:
    """Yield the findings about what is in an image once for each image, the gravest."""
    images: set[str] = set()
    for setup, finding in sorted(found, key=lambda pair: -pair[1].severity):
        if setup.image is not None and setup.image in images:
            continue
        if setup.image is not None:
            images.add(setup.image)
        yield finding


def device_beyond(setup: ContainerSetup, engine: ContainerEngine, devices: tuple[Device, ...] | None) -> str | None:
    """Return the first GPU that the container asks for by a number which the host has not; None where there is none."""
    if not devices or engine.is_local is False:
        return None
    way = gpu_way(setup, engine)
    asked = [name for request in setup.gpu_requests or () for name in request.device_ids if way == "request"]
    asked += visible_devices(setup).split(",") if way == "runtime" else []
    return next((name for name in asked if name.isdecimal() and int(name) >= len(devices)), None)
