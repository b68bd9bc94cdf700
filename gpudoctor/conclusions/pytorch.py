"""PyTorch, merged from its files and its import, and its probable build."""

from dataclasses import replace
from typing import Any

from gpudoctor.model import CudaIntent, CudaVersion, Devices, Driver, Gpu, Place, Pytorch, System
from gpudoctor.model.software import Environment, Python, Torch, TorchRuntime, lacks_module
from gpudoctor.symptoms import Symptoms, of_kind, pasted

# torch.version.cuda is None in every build without CUDA.
NO_CUDA_VERSION = "torch-version-cuda-none"
# Reasons why PyTorch finds no GPU with any build: a place without a GPU, or the driver.
ELSEWHERE = (
    *("no-gpu-in-*", "nvidia-smi-no*", "kernel-module-*", "nouveau-reported", "cuda-lost-after-suspend"),
    *(
        "guess-permissions",
        "guess-visible-devices*",
        "guess-ray-hides-gpu",
        "guess-container-not-host",
        "guess-no-nvidia-gpu",
    ),
    *("guess-container", "guess-compose-without-gpu", "guess-two-builds", "guess-pod-asks-for-none"),
    *("guess-service-unseen", "nix-libcuda-told"),
)


def pytorch(
    torch: Torch,
    torch_runtime: TorchRuntime,
    symptoms: Symptoms,
    gpu: Gpu,
    place: Place,
    cuda_intent: CudaIntent,
    python: Python,
    system: System,
    driver: Driver,
    devices: Devices,
    environment: Environment,
) -> Pytorch:
    """Return PyTorch from its files, completed from its import, with conclusions from both.

    A CUDA build that cannot use the GPU prints an error or a warning. The default wheels have CUDA for Linux and no
    CUDA for Windows.
    """
    read = merge_torch(torch, torch_runtime, symptoms)
    said = pasted(symptoms)
    of_numba = bool(of_kind(said, "about-numba")) and not of_kind(said, "about-torch-named")
    if of_numba and read.version is None:
        read = replace(read, available=None)  # Numba's module is named cuda, too, and has the same function
    if read.build is not None:
        return read
    if without_version := of_kind(said, NO_CUDA_VERSION):
        of_rocm = of_kind(said, "rocm-*", "hip-*", "amd-gpu-*")
        if of_rocm or (read.version is not None and read.version.local):
            return read
        return _probably_cpu(read, without_version[0].fact, "it has no CUDA version")
    chosen = of_kind(said, "amd-devices-variable")
    if read.version is None and chosen and of_kind(said, "amd-gpu-*"):
        reason = "its variable chooses AMD GPUs"
        return replace(read, build="rocm", facts={**read.facts, "build": chosen[0].fact}, likely={"build": reason})
    if place.is_windows and (replaced := of_kind(said, "torch-cuda-replaced")):
        return _probably_cpu(read, replaced[0].fact, "the wheels of PyPI for Windows have no CUDA")
    if read.available is not False or _another_reason(read, torch_runtime, driver, devices, environment):
        return read
    silent = bool(of_kind(said, "torch-gpu-wanted", *(("torch-on-cpu",) if gpu.name else ())))
    if (
        silent
        and not (place.about_container or of_kind(said, *ELSEWHERE))
        and _default_has_no_cuda(read, system, place)
    ):
        return _probably_cpu(read, "torch_runtime.available", "it finds no CUDA without an error message")
    listed = python.package("torch")
    if place.is_windows and cuda_intent.program and listed is not None and not listed[1].local:
        return _probably_cpu(read, "torch_runtime.available", "the wheels of PyPI for Windows have no CUDA")
    return read


def _probably_cpu(read: Pytorch, fact: str, reason: str) -> Pytorch:
    return replace(read, build="cpu", facts={**read.facts, "build": fact}, likely={"build": reason})


def _another_reason(
    read: Pytorch, runtime: TorchRuntime, driver: Driver, devices: Devices, environment: Environment
) -> bool:
    """Return whether a fact explains why PyTorch finds no GPU, whatever its build is."""
    if read.availability_error or read.import_error or read.hip_version:
        return True
    if driver.nvml_error or driver.cuda_init_error or driver.installed is False:
        return True
    visible = environment.get("CUDA_VISIBLE_DEVICES")
    hidden = visible is not None and not visible.startswith("0")
    return hidden or bool(runtime.device_count) or any(gpu.mig_enabled for gpu in devices or ())


def _default_has_no_cuda(read: Pytorch, system: System, place: Place) -> bool:
    """Return whether the default PyTorch build here has no CUDA; conda's solver chooses CPU builds silently."""
    if read.conda_build or (place.is_tegra and read.version is not None and not read.version.local):
        return True
    os = system.os
    return os in (None, "windows") if read.version is None else not read.version.local and os == "windows"


def merge_torch(torch: Torch, torch_runtime: TorchRuntime, symptoms: Symptoms = None) -> Pytorch:
    """Return PyTorch from its files, completed from its import. Nothing is inferred."""
    version = torch.version or torch_runtime.version
    local = version.local if version is not None else ""
    version_fact = "torch.version" if torch.version is not None else "torch_runtime.version"
    build, build_fact = _build(torch_runtime, local, version_fact, symptoms)
    values: dict[str, tuple[Any, Any, str]] = {
        "installed": (torch.installed, *_installed(torch, torch_runtime)),
        "version": (torch.version, torch_runtime.version, "torch_runtime.version"),
        "build": (torch.build or None, build, build_fact),
        "cuda_version": (torch.cuda_version, *_cuda_version(torch_runtime, local, version_fact)),
        "hip_version": (torch.hip_version, torch_runtime.hip_version, "torch_runtime.hip_version"),
        "architectures": (torch.architectures, torch_runtime.architectures, "torch_runtime.architectures"),
        "cxx11_abi": (torch.cxx11_abi, None, "torch.cxx11_abi"),
    }
    known = {name: (read if read is not None else other) for name, (read, other, _) in values.items()}
    facts = {name: f"torch.{name}" if read is not None else fact for name, (read, _, fact) in values.items()}
    return Pytorch(
        **known,
        conda_build=torch.conda_build,
        conda_cpuonly=torch.conda_cpuonly,
        available=torch_runtime.available,
        availability_error=torch_runtime.availability_error,
        import_error=torch_runtime.import_error,
        facts={name: fact for name, fact in facts.items() if known[name] is not None},
    )


def _installed(torch: Torch, runtime: TorchRuntime) -> tuple[bool | None, str]:
    """Return whether PyTorch is installed by its import, with the fact. Other import errors come from inside it."""
    fact = "torch_runtime.import_error" if runtime.version is None else "torch_runtime.version"
    if lacks_module(runtime.import_error, "torch"):
        return False, fact
    if runtime.version is None and runtime.import_error is None:
        fact = "torch.version" if torch.version is not None else "torch.build"
    there = torch.version or torch.build or runtime.version or runtime.import_error is not None
    return (True if there else None), fact


def _build(runtime: TorchRuntime, local: str, version_fact: str, symptoms: Symptoms) -> tuple[str | None, str]:
    """Return the build kind, with its fact: from PyTorch itself, else from the local part of its version."""
    if runtime.cuda_version is not None or CudaVersion.of_tag(local) is not None:
        return "cuda", "torch_runtime.cuda_version" if runtime.cuda_version is not None else version_fact
    if runtime.hip_version:
        return "rocm", "torch_runtime.hip_version"
    named = next((name for name in ("cpu", "rocm", "xpu") if local.startswith(name)), None)
    if named:
        return named, version_fact
    own = tuple(symptom for symptom in symptoms or () if symptom.fact.startswith("torch_runtime"))
    said = of_kind(own, "torch-not-compiled-with-cuda")
    if said or (runtime.hip_version == "" and runtime.architectures == ()):
        return "mps" if runtime.mps_built else "cpu", said[0].fact if said else "torch_runtime.architectures"
    return None, ""


def _cuda_version(runtime: TorchRuntime, local: str, version_fact: str) -> tuple[CudaVersion | None, str]:
    if runtime.cuda_version is not None:
        return runtime.cuda_version, "torch_runtime.cuda_version"
    return CudaVersion.of_tag(local), version_fact
