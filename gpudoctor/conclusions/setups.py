"""Containers, services and images seen from the host: GPU access, GPU intent, and failures."""

import re
from collections.abc import Iterator
from dataclasses import replace

from gpudoctor.conclusions.engine_lacks import engine_lack
from gpudoctor.model import Container, CudaVersion, Devices, GpuIntent, ImageCuda, MissingGpu, SeenSetup, System
from gpudoctor.model.containers import ContainerEngine, Containers, ContainerSetup
from gpudoctor.symptoms import of_kind

CDI_KIND = "nvidia.com/"
NO_DEVICES = ("", "void", "none")
"""Values of NVIDIA_VISIBLE_DEVICES for no GPU. Source: NVIDIA Container Toolkit, "Specialized Configurations"."""

HIDDEN = ("", "-1")
# Images whose names show that they are for GPUs: nvidia/cuda:13.0.1-base, nvcr.io/nvidia/pytorch:25.10-py3.
_CUDA_IMAGE = r"(?:^|/)nvidia/cuda|^nvcr\.io/nvidia/|:[\w.-]*(?:cuda|cu1[1-9])\d*"
_CUDA_OF_NAME = r"(?:(?:^|/)(?:cuda|cuda-gl|cudagl):|:[\w.-]*?cuda-?)(\d{1,2}\.\d{1,2})(?:\.\d+)?(?:[-_]|@|$)"


def setups(
    containers: Containers | None, container: Container, devices: Devices, system: System
) -> tuple[SeenSetup, ...]:
    """Return the examined containers, services and images in their order.

    container: the engines of this machine, from their files.
    """
    engine = (containers.engine if containers is not None else None) or ContainerEngine()
    found = containers.setups if containers is not None else ()
    seen = (_seen(f"containers.setups[{number}]", setup, engine) for number, setup in enumerate(found))
    gpu_here = _host_has_gpu(devices, system, engine)
    return tuple(
        replace(
            item,
            host_has_gpu=gpu_here,
            missing_gpu=_missing_gpu(item, devices),
            engine_lack=engine_lack(item, container),
        )
        for item in seen
    )


def _seen(path: str, setup: ContainerSetup, engine: ContainerEngine) -> SeenSetup:
    failures = enumerate(setup.failures)
    return SeenSetup(
        path=path,
        setup=setup,
        engine=engine,
        gpu_access=gpu_access(setup, engine),
        gpu_intent=gpu_intent(path, setup),
        declines_gpu=_declines_gpu(setup),
        image_cuda=tuple(_image_cuda(path, setup)),
        failures=tuple(replace(failure, fact=f"{path}.failures[{number}].text") for number, failure in failures),
    )


def gpu_access(setup: ContainerSetup, engine: ContainerEngine) -> str | None:
    """Return how the container gets the GPU, as `SeenSetup.gpu_access` says."""
    if any(name.startswith(CDI_KIND) for request in setup.gpu_requests or () for name in request.device_ids):
        return "cdi"
    for request in setup.gpu_requests or ():
        if (request.driver == "nvidia" or "gpu" in request.capabilities) and (request.count or request.device_ids):
            return "request"
    if any(re.match(r"/dev/(?:nvidia|dxg)", path) for path in setup.device_files or ()):
        return "devices"
    if (setup.runtime or engine.default_runtime or "").startswith("nvidia") and _visible(setup) not in NO_DEVICES:
        return "runtime"
    if setup.gpu_requests is None or setup.is_privileged:
        return None  # a privileged container has the device nodes; the libraries may be mounted by hand
    if not setup.runtime and engine.default_runtime is None:
        return None
    return ""


def _visible(setup: ContainerSetup) -> str:
    """Return NVIDIA_VISIBLE_DEVICES; "" if it is unset, which selects no GPU except in old CUDA images."""
    is_old = "CUDA_VERSION" in setup.environment and "NVIDIA_REQUIRE_CUDA" not in setup.environment
    return setup.environment.get("NVIDIA_VISIBLE_DEVICES", "all" if is_old else "")


def gpu_intent(path: str, setup: ContainerSetup) -> GpuIntent | None:
    """Return why the container is meant to use the GPU; None without evidence."""
    of_image = setup.image_environment or {}
    if "CUDA_VERSION" in of_image or "NVIDIA_REQUIRE_CUDA" in of_image:
        version = of_image.get("CUDA_VERSION")
        words = f"its image is for CUDA{f' {version[:20]}' if version else ''}"
        return GpuIntent(fact=f"{path}.image_environment", words=words)
    if of_image.get("NVIDIA_VISIBLE_DEVICES", "void") not in NO_DEVICES:
        return GpuIntent(fact=f"{path}.image_environment", words="its image asks for GPUs (NVIDIA_VISIBLE_DEVICES)")
    for field, name, words in (("image", setup.image, "is"), ("base", setup.base, "is built from")):
        if name and re.search(_CUDA_IMAGE, name):
            return GpuIntent(fact=f"{path}.{field}", words=f"its image {words} {name[:100]}")
    if setup.environment.get("NVIDIA_VISIBLE_DEVICES", "void") not in NO_DEVICES:
        return GpuIntent(fact=f"{path}.environment", words="it sets NVIDIA_VISIBLE_DEVICES")
    if setup.torch is not None and setup.torch.build == "cuda":
        words = f"PyTorch {setup.torch.version} in it is built for CUDA"
        return GpuIntent(fact=f"{path}.torch", words=words, certain=False)
    return None


def _declines_gpu(setup: ContainerSetup) -> bool:
    """Return whether the container itself declines a GPU."""
    own = {name: text for name, text in setup.environment.items() if (setup.image_environment or {}).get(name) != text}
    return own.get("CUDA_VISIBLE_DEVICES", "0") in HIDDEN or own.get("NVIDIA_VISIBLE_DEVICES", "all") in NO_DEVICES


def _image_cuda(path: str, setup: ContainerSetup) -> Iterator[ImageCuda]:
    """Yield the CUDA versions that the image is for, most reliable source first."""
    number = re.match(r"\d{1,3}\.\d{1,3}", setup.environment.get("CUDA_VERSION", ""))
    torch = setup.torch
    shown = (
        ("base", cuda_of_image_name(setup.base), f"it is built FROM {setup.base}"),
        ("image", cuda_of_image_name(setup.image), f"its image is {setup.image}"),
        ("environment", CudaVersion.parse(number[0]) if number else None, "its image sets CUDA_VERSION"),
        ("torch", torch.cuda_version if torch is not None else None, "its PyTorch is built for it"),
    )
    for field, version, words in shown:
        if version is not None:
            yield ImageCuda(version=version, fact=f"{path}.{field}", words=words[:160])


def cuda_of_image_name(name: str | None) -> CudaVersion | None:
    """Return the CUDA version in an image's name: nvidia/cuda:12.2.2-devel, pytorch:2.1.0-cuda11.8-cudnn8."""
    match = re.search(_CUDA_OF_NAME, name or "")
    return CudaVersion.parse(match[1]) if match else None


def _host_has_gpu(devices: Devices, system: System, engine: ContainerEngine) -> bool | None:
    """Return whether the engine's machine has an NVIDIA GPU; None if unknown."""
    if engine.is_local is False:
        return None
    gpus = system.nvidia_gpus
    if devices or gpus:
        return True
    return False if () in (devices, gpus) else None


def _missing_gpu(seen: SeenSetup, devices: Devices) -> MissingGpu | None:
    """Return the first GPU that the container requests and the host lacks, from the engine or by number."""
    for failure in of_kind(seen.failures, "container-unknown-device"):
        if "device" in failure.names:
            return MissingGpu(name=failure.names["device"], fact=failure.fact)
    if not devices or seen.engine.is_local is False:
        return None
    asked: list[str] = []
    if seen.gpu_access == "request":
        asked = [name for request in seen.setup.gpu_requests or () for name in request.device_ids]
    elif seen.gpu_access == "runtime":
        asked = _visible(seen.setup).split(",")
    beyond = next((name for name in asked if name.isdecimal() and int(name) >= len(devices)), None)
    field = "gpu_requests" if seen.gpu_access == "request" else "environment"
    return MissingGpu(name=beyond, fact=f"{seen.path}.{field}") if beyond is not None else None
