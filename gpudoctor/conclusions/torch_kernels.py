"""Whether the PyTorch build has machine code for the GPUs."""

import re
from dataclasses import replace

from gpudoctor.data.capabilities import is_tegra, runs_on
from gpudoctor.data.gpu_names import capability_of
from gpudoctor.data.torch_builds import TorchBuild, torch_builds, torch_releases
from gpudoctor.data.torch_wheels import torch_platform
from gpudoctor.model import Gpu, KnownGpu, Nvrtc, Origin, Pytorch, Symptom, System, TorchDevices, TorchKernels
from gpudoctor.model.record import record
from gpudoctor.model.versions import ComputeCapability
from gpudoctor.symptoms import Symptoms, first, of_kind

# CUDA errors at the first kernel, from PyTorch or an extension, and of libraries with kernels for other GPUs.
FAILED = ("torch-no-kernel-image", "torch-invalid-device-function", "kernel-built-for-other-device")
# PyTorch's messages about its own build.
WARNED = ("torch-arch-old-list", "torch-arch-too-old", "torch-arch-range", "torch-arch-built-for", "torch-arch-new")
COMPLAINTS = (*FAILED, *WARNED, "torch-arch-none", "torch-gpu-requires-cuda", "triton-ptxas-arch")


@record
class _Code:
    """The architectures in the build's machine code: `lists` has one list for each build that it may be."""

    lists: tuple[tuple[str, ...], ...]
    fact: str
    source: str = ""


def torch_kernels(
    pytorch: Pytorch,
    torch_devices: TorchDevices,
    gpu: Gpu,
    nvrtc: Nvrtc,
    origin: Origin,
    system: System,
    symptoms: Symptoms,
) -> TorchKernels:
    """Return the GPUs that the build has machine code for: read from it, else from the table of releases."""
    own = tuple(found for found in symptoms or () if not found.fact.startswith("cupy_runtime"))
    complaint = first(of_kind(own, *COMPLAINTS))
    said = tuple(
        found for found in own if origin.is_report or found.fact.startswith("reports")
    )  # a probe ended with this message
    failed = first(of_kind(said, *FAILED))
    refused = nvrtc.refused if nvrtc.refused in own else None
    gpus = _gpus(torch_devices, gpu, own) or (_on_bus(system) if origin.is_report else ())
    gpus = gpus or (nvrtc.named_gpus if refused else ())
    code = _code(pytorch, system) or _code_in(own)
    if code is not None and code.source and complaint is None and failed is None and _is_of_jetson(pytorch, gpus):
        code = None  # NVIDIA builds these wheels, with other code than the table of releases has
    if code is not None and complaint is not None:
        # Only some PyTorch kernels have PTX, so PTX does not help if PyTorch itself complains.
        code = replace(code, lists=tuple(tuple(n for n in names if n.startswith("sm_")) for names in code.lists))
    return TorchKernels(
        gpus=gpus,
        runs=tuple(_runs(found, code, pytorch, torch_devices, failed) for found in gpus),
        code=_in_words(code, pytorch) if code is not None else "",
        fact=code.fact if code is not None else "",
        source=code.source if code is not None else "",
        complaint=complaint,
        failed=failed,
        ptxas=first(of_kind(own, "triton-ptxas-arch")),
        refused=refused,
    )


def _is_of_jetson(pytorch: Pytorch, gpus: tuple[KnownGpu, ...]) -> bool:
    """Return whether the wheel may be one of NVIDIA's for Jetson, whose versions have no variant such as "+cu126"."""
    return any(is_tegra(found.capability) for found in gpus) and not (pytorch.version and pytorch.version.local)


def _gpus(torch_devices: TorchDevices, gpu: Gpu, symptoms: tuple[Symptom, ...]) -> tuple[KnownGpu, ...]:
    """Return the GPUs that PyTorch lists, else those of NVML, else the one in PyTorch's message."""
    listed = torch_devices.listed
    known = tuple(KnownGpu(name=one.name, capability=one.capability, fact=one.capability_fact) for one in listed)
    if known or gpu.known:
        return known or gpu.known
    named = next((found for found in of_kind(symptoms, *COMPLAINTS) if "capability" in found.names), None)
    if named is None:
        return ()
    capability = ComputeCapability.parse(named.names["capability"])
    return (KnownGpu(name=named.names.get("device", "the GPU"), capability=capability, fact=named.fact),)


def _on_bus(system: System) -> tuple[KnownGpu, ...]:
    """Return the only GPU that a report names; several names are ambiguous."""
    found = system.nvidia_gpus or ()
    capability = capability_of(found[0].name, found[0].device_id or None) if len(found) == 1 else None
    return (KnownGpu(name=found[0].label, capability=capability, fact="system.pci_gpus"),) if capability else ()


def _code(pytorch: Pytorch, system: System) -> _Code | None:
    if pytorch.architectures:
        return _Code(lists=(pytorch.architectures,), fact=pytorch.facts["architectures"])
    builds = _builds(pytorch)
    platform = torch_platform(system.os or "linux", system.machine) or "linux_x86_64"
    lists = tuple(dict.fromkeys(build.platform_architectures.get(platform, ()) for build in builds))
    if not lists or () in lists:
        return None
    return _Code(lists=lists, fact=pytorch.facts["version"], source=builds[0].source)


def _builds(pytorch: Pytorch) -> tuple[TorchBuild, ...]:
    """Return the official builds that this may be; none for a conda or source build."""
    version = pytorch.version
    if version is None or pytorch.conda_build:
        return ()
    listed = any(version.public in release.versions for release in torch_releases())
    of_release = torch_builds(version.minor_release) if listed else ()
    if version.local:
        return tuple(build for build in of_release if build.variant == version.local)
    if pytorch.cuda_version is not None:
        return tuple(build for build in of_release if build.cuda == pytorch.cuda_version)
    return of_release


def _code_in(symptoms: tuple[Symptom, ...]) -> _Code | None:
    """Return the list from PyTorch's message: "supports CUDA capabilities sm_50 sm_60"."""
    found = next((found for found in of_kind(symptoms, "torch-arch-*") if "architectures" in found.names), None)
    return _Code(lists=(tuple(re.split(r"[, ]+", found.names["architectures"])),), fact=found.fact) if found else None


def _runs(
    gpu: KnownGpu, code: _Code | None, pytorch: Pytorch, torch_devices: TorchDevices, failed: Symptom | None
) -> bool | None:
    """Return whether the code runs on the GPU; None if the possible builds differ."""
    if any(device.right for device in torch_devices.listed if device.capability_fact == gpu.fact):
        return True
    if code is None:
        return None
    answers = {runs_on(names, gpu.capability, pytorch.cuda_version) for names in code.lists}
    if len(answers) > 1:
        return False if failed is not None else None  # a build that runs here would not have failed
    return answers.pop()


def _in_words(code: _Code, pytorch: Pytorch) -> str:
    if len(code.lists) == 1:
        return " ".join(code.lists[0])
    release = pytorch.version.minor_release if pytorch.version else ""
    names = sorted(set().union(*code.lists), key=lambda name: int(re.sub(r"\D", "", name) or 0))
    return f"{' '.join(names)} at most in any build of {release}"
