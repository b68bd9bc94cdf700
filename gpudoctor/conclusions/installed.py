"""What is installed, from disk or from its import: of a pasted report often only one of the two is known."""

from __future__ import annotations

import re
from dataclasses import replace

from gpudoctor.conclusions.gpu import gpu
from gpudoctor.conclusions.torch_devices import torch_devices
from gpudoctor.model import (
    CudaVersion,
    Cupy,
    CupyRuntime,
    Device,
    Driver,
    KnownGpu,
    Package,
    PackageVersion,
    Project,
    Python,
    Remedy,
    Requirement,
    Severity,
    System,
    Torch,
    TorchRuntime,
)
from gpudoctor.model.record import record
from gpudoctor.remedies import install_cupy, install_torch

# Libraries besides PyTorch and CuPy for which people have a GPU.
OTHER_FRAMEWORKS = ("tensorflow*", "tf-nightly*", "jax", "jaxlib", "onnxruntime*", "numba", "cudf*", "cuml*")


@record
class Machine:
    """What the choice of a build depends on; None for unknown."""

    python: Python | None = None
    system: System | None = None
    driver: Driver | None = None
    devices: tuple[Device, ...] | None = None

    def install_torch(self, torch: Torch | None = None) -> Remedy:
        """Return how to install the build of PyTorch that fits."""
        return install_torch(
            python=self.python, system=self.system, driver=self.driver, devices=self.devices, pytorch=torch
        )

    def install_cupy(self, cupy: Cupy | None = None) -> Remedy:
        """Return how to install the one CuPy that fits."""
        return install_cupy(python=self.python, system=self.system, driver=self.driver, devices=self.devices, cupy=cupy)

    def gpu(self) -> str | None:
        """Return the name of an NVIDIA GPU that programs here are meant to use, "" for none, None for unknown.

        The PCI bus shows more: GPUs handed on to a virtual machine, and those of the host that a container did not get.
        """
        return gpu(self.devices, self.driver, self.system).name

    def gpu_fact(self) -> str:
        """Return the dotted path of the fact that names that GPU."""
        return gpu(self.devices, self.driver, self.system).fact


def whole_torch(torch: Torch | None, torch_runtime: TorchRuntime | None = None) -> Torch:
    """Return PyTorch as it lies on disk, with what its import told where the disk did not."""
    base = torch or Torch()
    runtime = torch_runtime or TorchRuntime()
    version = base.version or runtime.version
    local = version.local if version is not None else ""
    build = base.build or _build(runtime, local)
    return replace(
        base,
        installed=_installed(base, runtime),
        version=version,
        build=build,
        cuda_version=base.cuda_version or runtime.cuda_version or _cuda_of(local),
        hip_version=runtime.hip_version if base.hip_version is None else base.hip_version,
        architectures=base.architectures if base.architectures is not None else runtime.architectures,
    )


def _installed(torch: Torch, runtime: TorchRuntime) -> bool | None:
    if torch.installed is not None:
        return torch.installed
    if lacks_module(runtime.import_error, "torch"):
        return False
    # An import that fails otherwise failed inside it.
    there = torch.version or torch.build or runtime.version or runtime.import_error is not None
    return True if there else None


def lacks_module(import_error: str | None, module: str) -> bool:
    """Return whether the import failed because there is no such module, not one that it needs itself."""
    return re.search(rf"No module named '?{module}'?$", import_error or "") is not None


def _build(runtime: TorchRuntime, local: str) -> str | None:
    """Return the kind of build by what PyTorch said of itself, else by the local part of its version."""
    if runtime.cuda_version is not None or _cuda_of(local) is not None:
        return "cuda"
    if runtime.hip_version:
        return "rocm"
    named = next((name for name in ("cpu", "rocm", "xpu") if local.startswith(name)), None)
    if named:
        return named
    if _denies_cuda(runtime) or (runtime.hip_version == "" and runtime.architectures == ()):
        return "mps" if runtime.mps_built else "cpu"
    return None


def _denies_cuda(runtime: TorchRuntime) -> str:
    """Return the path of the text in which PyTorch says that it was built without CUDA; "" if there is none."""
    return next((path for path, text in runtime.texts if "torch not compiled with cuda enabled" in text.lower()), "")


def _cuda_of(local: str) -> CudaVersion | None:
    """Return the CUDA version of a variant such as "cu130", None for another local version."""
    match = re.match(r"cu(\d{1,2})(\d)(?!\d)", local)
    return CudaVersion(int(match[1]), int(match[2])) if match else None


def torch_fact(name: str, torch: Torch | None, torch_runtime: TorchRuntime | None) -> str:
    """Return the dotted path of the fact from which `whole_torch` has the field `name`, which must be known there."""
    if torch is not None and getattr(torch, name) is not None:
        return f"torch.{name}"
    if torch_runtime is not None and getattr(torch_runtime, name, None) is not None:
        return f"torch_runtime.{name}"
    runtime = torch_runtime or TorchRuntime()
    if name == "installed":
        return "torch_runtime.import_error" if runtime.version is None else "torch_runtime.version"
    if name == "build" and (runtime.cuda_version or runtime.hip_version):
        return "torch_runtime.cuda_version" if runtime.cuda_version else "torch_runtime.hip_version"
    said = _denies_cuda(runtime) if name == "build" else ""
    if said:
        return said
    return "torch.version" if torch is not None and torch.version is not None else "torch_runtime.version"


def cupy_installed(cupy: Cupy | None, cupy_runtime: CupyRuntime | None = None) -> bool | None:
    """Return whether CuPy is installed, None where that is not known."""
    if cupy is not None and (cupy.distributions or cupy.version is not None):
        return True
    if cupy_runtime is not None and (cupy_runtime.version is not None or cupy_runtime.import_error is not None):
        return not lacks_module(cupy_runtime.import_error, "cupy")
    return False if cupy is not None and cupy.distributions == () else None


def known_gpus(devices: tuple[Device, ...] | None, torch_runtime: TorchRuntime | None = None) -> tuple[KnownGpu, ...]:
    """Return the NVIDIA GPUs of known compute capability: those that PyTorch sees, else all."""
    listed = torch_devices(torch_runtime).listed
    known = tuple(KnownGpu(name=one.name, capability=one.capability, fact=one.capability_fact) for one in listed)
    return known or gpu(devices, None, None).known


def as_devices(gpus: tuple[KnownGpu, ...], devices: tuple[Device, ...] | None) -> tuple[Device, ...]:
    """Return the devices, made up from `gpus` where only PyTorch named them: for remedies."""
    if devices:
        return devices
    return tuple(
        Device(nvml_index=index, name=gpu.name, compute_capability=gpu.capability) for index, gpu in enumerate(gpus)
    )


def package(python: Python | None, name: str) -> tuple[str, PackageVersion] | None:
    """Return the dotted path and version of an installed distribution, None where it is not there or not known."""
    return python.package(name) if python is not None else None


def matching_packages(python: Python | None, *names: str) -> list[Package]:
    """Return the installed distributions of these names; a name may end with "*"."""
    return list(python.matching(*names)) if python is not None else []


def required(project: Project | None, *names: str) -> Requirement | None:
    """Return the project's requirement on one of `names`; what it asks for in an extra or a group is optional."""
    return project.always_requires(*names) if project is not None else None


def severity_without_torch(
    project: Project | None, gpu: str | None, cupy: Cupy | None, python: Python | None
) -> Severity:
    """Return how much it matters that PyTorch is not there."""
    if required(project, "torch", "pytorch", "torchvision", "torchaudio"):
        return Severity.ERROR
    others = matching_packages(python, *OTHER_FRAMEWORKS)
    return Severity.WARNING if gpu and cupy_installed(cupy) is False and not others else Severity.INFO
