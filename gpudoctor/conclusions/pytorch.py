"""PyTorch, merged from its files and from its import, and the build that it probably is."""

from __future__ import annotations

from dataclasses import replace

from gpudoctor.conclusions.installed import torch_fact, whole_torch
from gpudoctor.model import (
    CudaIntent,
    Device,
    Driver,
    Environment,
    Gpu,
    Place,
    Python,
    Pytorch,
    Symptom,
    System,
    Torch,
    TorchRuntime,
)
from gpudoctor.symptoms import of_kind, pasted

FIELDS = ("installed", "version", "build", "cuda_version", "hip_version", "architectures", "cxx11_abi")
# torch.version.cuda is None in every build that is not for CUDA.
NO_CUDA_VERSION = "torch-version-cuda-none"


def pytorch(
    torch: Torch | None,
    torch_runtime: TorchRuntime | None,
    symptoms: tuple[Symptom, ...] | None,
    gpu: Gpu,
    place: Place,
    cuda_intent: CudaIntent,
    python: Python | None,
    system: System | None,
    driver: Driver | None,
    devices: tuple[Device, ...] | None,
    environment: Environment | None,
) -> Pytorch:
    """Return PyTorch as its files show it, with what its import shows in addition, and what follows from both.

    A CUDA build that cannot use the GPU says why: an error or a warning. The default wheels for Linux have CUDA, and
    those for Windows have none.
    """
    merged = whole_torch(torch, torch_runtime)
    known = {name: getattr(merged, name) for name in (*FIELDS, "conda_build", "conda_cpuonly")}
    facts = {name: torch_fact(name, torch, torch_runtime) for name in FIELDS if known[name] is not None}
    runtime = torch_runtime or TorchRuntime()
    read = Pytorch(
        **known,
        available=runtime.available,
        availability_error=runtime.availability_error,
        import_error=runtime.import_error,
        facts=facts,
    )
    if read.build is not None:
        return read
    said = pasted(symptoms)
    without_version = of_kind(said, NO_CUDA_VERSION)
    if without_version:
        of_rocm = of_kind(said, "rocm-*", "hip-*", "amd-gpu-*")
        if of_rocm or (read.version is not None and read.version.local):
            return read
        return _probably_cpu(read, without_version[0].fact, "it has no CUDA version")
    if read.available is not False or _another_reason(read, runtime, driver, devices, environment):
        return read
    silent = bool(of_kind(said, "torch-gpu-wanted", *(("torch-on-cpu",) if gpu.name else ())))
    if silent and _default_has_no_cuda(read, system):
        return _probably_cpu(read, "torch_runtime.available", "it finds no CUDA and names no error")
    listed = python.package("torch") if python is not None else None
    if place.is_windows and cuda_intent.program and listed is not None and not listed[1].local:
        return _probably_cpu(read, "torch_runtime.available", "the wheels of PyPI for Windows have no CUDA")
    return read


def _probably_cpu(read: Pytorch, fact: str, reason: str) -> Pytorch:
    return replace(read, build="cpu", facts={**read.facts, "build": fact}, likely={"build": reason})


def _another_reason(
    read: Pytorch,
    runtime: TorchRuntime,
    driver: Driver | None,
    devices: tuple[Device, ...] | None,
    environment: Environment | None,
) -> bool:
    """Return whether a fact explains that PyTorch finds no GPU, whatever its build is."""
    if read.availability_error or read.import_error or read.hip_version:
        return True
    if driver is not None and (driver.nvml_error or driver.cuda_init_error or driver.installed is False):
        return True
    visible = environment.get("CUDA_VISIBLE_DEVICES") if environment is not None else None
    hidden = visible is not None and not visible.startswith("0")
    return hidden or bool(runtime.device_count) or any(gpu.mig_enabled for gpu in devices or ())


def _default_has_no_cuda(read: Pytorch, system: System | None) -> bool:
    """Return whether what installs PyTorch by default here has no CUDA; conda's solver takes CPU builds silently."""
    if read.conda_build:
        return True
    os = system.os if system is not None else None
    return os in (None, "windows") if read.version is None else not read.version.local and os == "windows"
