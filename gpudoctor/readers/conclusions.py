"""What follows from the facts of a report and stands in none of its texts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from gpudoctor.data import capability_of
from gpudoctor.model import CudaVersion, Cupy, Device, Driver, Package, PackageVersion, Symptom, System, Torch
from gpudoctor.readers.facts import Facts, joined
from gpudoctor.readers.package_facts import cuda_major

# Words of messages after which a GPU that somebody names is not known to answer.
_NOT_ANSWERING = re.compile(
    r"no nvidia driver|nvml|nvidia-smi has failed|no cuda-capable|no cuda gpus|driver was not detected|libcuda\.so"
    r"|no devices were found|unknown error|could not select device|driver is insufficient|gpu access blocked",
    re.IGNORECASE,
)
# "torch==1.13.1", "torch===1.3.0" of commands for Windows; and an index of one variant: "cu118", "nightly/cpu".
_PINNED = re.compile(r"(?:^|\s)torch={2,3}(\d\.\d{1,2}\.\d)(?![\w.+])")
_VARIANT = re.compile(r"(?:^|/)(?:cu\d|cpu|rocm|xpu)")


def concluded(facts: Facts) -> tuple[Facts, Facts]:
    """Return the facts with what follows from them, and that alone."""
    facts = _with_local_version(facts)
    conclusions: Facts = {**_torch(facts), **_driver(facts), **_system(facts.get("system")), **_cupy(facts.get("cupy"))}
    named = _named_devices(facts)
    if named:
        conclusions["devices"] = named
    result = joined(facts, conclusions)
    if result.get("devices"):
        result["devices"] = tuple(_device(device) for device in result["devices"])
    return result, conclusions


def _with_local_version(facts: Facts) -> Facts:
    """Return the facts with the version of PyTorch in its long form: a list says "2.1.1", PyTorch "2.1.1+cu118"."""
    torch = facts.get("torch")
    version = torch.version if torch is not None else None
    if torch is None or version is None or version.local:
        return facts
    longer = next((other for other in _versions(facts) if other.local and other.public == version.public), None)
    return facts if longer is None else {**facts, "torch": replace(torch, version=longer)}


def _versions(facts: Mapping[str, Any]) -> list[PackageVersion]:
    """Return the versions of PyTorch that the other sections tell."""
    runtime, python = facts.get("torch_runtime"), facts.get("python")
    packages: tuple[Package, ...] = (python.packages if python is not None else None) or ()
    told = [item.version for item in packages if item.name == "torch"]
    return told + ([runtime.version] if runtime is not None and runtime.version is not None else [])


def _torch(facts: Mapping[str, Any]) -> Facts:
    """Return what PyTorch's version tells: of the local part "cpu", "cu118", "rocm6.0", and that it is installed."""
    torch, runtime = facts.get("torch"), facts.get("torch_runtime")
    version = (torch.version if torch is not None else None) or (runtime.version if runtime is not None else None)
    if torch is not None and torch.installed is False:
        return {}
    if version is None and runtime is not None and runtime.available is not None:
        version = _pinned(facts)
    if version is None:
        build = (torch.build if torch is not None else None) or _build(facts, None)
        return {"torch": Torch(installed=True, build=build)} if build else {}
    local = re.match(r"(cpu|cu|rocm|xpu)(\d{2,3}(?!\d))?", version.local)
    digits = local[2] if local and local[1] == "cu" else None
    cuda = CudaVersion(int(digits[:-1]), int(digits[-1])) if digits else None
    hip = re.match(r"rocm(\d[\d.]*)", version.local)
    return {
        "torch": Torch(
            installed=True,
            version=version,
            build=_build(facts, local[1] if local else None),
            cuda_version=cuda or (runtime.cuda_version if runtime is not None else None),
            hip_version=hip[1] if hip else None,
        )
    }


def _pinned(facts: Mapping[str, Any]) -> PackageVersion | None:
    """Return the version of PyTorch that a command of pip names without a variant, before a session that imports it."""
    messages: tuple[Symptom, ...] = facts.get("symptoms") or ()
    kinds = {message.kind for message in messages}
    variants = [message.names.get("variant", "") for message in messages if message.kind == "pip-index"]
    if "pip-no-version" in kinds or "pip-no-match" in kinds or any(_VARIANT.search(variant) for variant in variants):
        return None
    commands = [message.names.get("arguments", "") for message in messages if message.kind == "pip-install-command"]
    found = [match[1] for match in map(_PINNED.search, commands) if match]
    return PackageVersion(found[-1]) if found and len(set(found)) == 1 else None


def _build(facts: Mapping[str, Any], local: str | None) -> str | None:
    """Return the kind of build, by the local part of the version, the version of CUDA or ROCm, or the machine code."""
    if local is not None:
        return "cuda" if local == "cu" else local
    sections = [section for section in (facts.get("torch"), facts.get("torch_runtime")) if section is not None]
    code = [name for section in sections for name in section.architectures or ()]
    if any(section.cuda_version is not None for section in sections) or any(name.startswith("sm_") for name in code):
        return "cuda"
    hip = any(section.hip_version for section in sections) or any(name.startswith("gfx") for name in code)
    return "rocm" if hip else None


def _driver(facts: Mapping[str, Any]) -> Facts:
    """Return that a driver is there where its version is known, or where it is loaded."""
    driver = facts.get("driver")
    if driver is not None and driver.installed is None and (driver.version is not None or driver.module_loaded):
        return {"driver": Driver(installed=True)}
    return {}


def _system(system: System | None) -> Facts:
    """Return the operating system that a distribution, a kernel or WSL belongs to."""
    if system is None:
        return {}
    linux = system.distribution or system.wsl or system.glibc or system.container
    wsl = 0 if system.wsl is None and system.kernel and "microsoft" not in system.kernel.lower() else None
    found = System(os="linux" if linux and system.os is None else None, wsl=wsl if system.os == "linux" else None)
    return {"system": found} if found != System() else {}


def _cupy(cupy: Cupy | None) -> Facts:
    """Return what the name of the only CuPy distribution tells."""
    names = {item.name for item in cupy.distributions or ()} if cupy is not None else set()
    major = cuda_major(names.pop()) if len(names) == 1 else None
    return {"cupy": Cupy(platform="cuda", cuda_major=major)} if major is not None else {}


def _named_devices(facts: Mapping[str, Any]) -> tuple[Device, ...]:
    """Return the NVIDIA GPUs that the report names as devices, where nothing in it says that they do not answer.

    Without a list of the driver's the name is what there is to tell what a GPU can run.
    """
    system = facts.get("system")
    gpus = [
        gpu for gpu in (system.pci_gpus if system is not None else None) or () if gpu.vendor == "nvidia" and gpu.name
    ]
    if (
        "devices" in facts
        or not gpus
        or any(gpu.bound_driver not in ("", "nvidia") for gpu in gpus)
        or _is_silent(facts)
    ):
        return ()
    return tuple(Device(nvml_index=index, name=gpu.name) for index, gpu in enumerate(gpus))


def _is_silent(facts: Mapping[str, Any]) -> bool:
    """Tell whether something shows that the driver or PyTorch does not reach the GPU."""
    driver, runtime = facts.get("driver"), facts.get("torch_runtime")
    if driver is not None:
        absent = driver.installed is False or driver.module_loaded is False or driver.nouveau_loaded
        if absent or driver.nvml_error or driver.nvml_code or driver.cuda_init_code or driver.libcuda_error:
            return True
    if runtime is not None and (runtime.available is False or runtime.device_count == 0):
        return True
    return any(_NOT_ANSWERING.search(message.text) for message in facts.get("symptoms") or ())


def _device(device: Device) -> Device:
    """Return the device with its compute capability, by the name of the product."""
    if device.compute_capability is not None:
        return device
    return replace(device, compute_capability=capability_of(device.name, device.pci_device_id))
