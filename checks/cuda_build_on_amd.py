"""A CUDA build of PyTorch and an AMD GPU."""

import re
from collections.abc import Iterator
from dataclasses import replace

from gpudoctor.conclusions.error_codes import gpu_name, nvidia_gpus
from gpudoctor.conclusions.messages import reported
from gpudoctor.conclusions.torch_requests import index_asked
from gpudoctor.data import rocm_builds
from gpudoctor.data.rocm import gfx_target_of
from gpudoctor.model import Device, Finding, Python, Remedy, Severity, Symptom, System, Torch
from gpudoctor.registry import Skip, check, known, skip_unless
from gpudoctor.remedies import python_command

# A release whose ROCm builds and gfx targets are in the table, for a torch whose own release has none.
FALLBACK_RELEASE = "2.13"
INSTALL = "https://pytorch.org/get-started/locally/"
# What a program prints that asks for CUDA; without a driver of NVIDIA old releases call it insufficient.
ASKED = ("asks-for-cuda", "torch-no-driver", "torch-not-compiled-with-cuda", "cuda-insufficient-driver")


@check(
    family="vendor",
    explains=(
        "torch-cuda-unavailable",
        "no-nvidia-gpu",
        "driver-missing",
        "driver-not-loaded",
        "driver-too-old",
        "torch-cpu-build",
        "windows-pypi-cpu-wheel",
        "container-without-gpu",
        "container-setup-without-gpu",
        "container-torch-cpu-build",
    ),
)
def cuda_build_on_amd(
    torch: Torch | None = None,
    system: System | None = None,
    devices: tuple[Device, ...] | None = None,
    python: Python | None = None,
    symptoms: tuple[Symptom, ...] | None = None,
) -> Iterator[Finding]:
    """PyTorch is built for NVIDIA's CUDA, and the GPU is of AMD.

    Why: a build of PyTorch is for one vendor; an AMD GPU needs a ROCm build, which is on PyTorch's own index only.
    Exception: a machine that has an NVIDIA GPU too passes, and so does an AMD GPU for which no ROCm build has code,
    such as most graphics parts inside processors. Where the GPU's gfx target is unknown it is a warning.
    Reference: https://pytorch.org/get-started/locally/
    """
    skip_unless(not (_is_for_cpu(torch) and index_asked(symptoms, "rocm")), "ROCm was asked for, a CPU build came")
    told = _told(torch, devices, symptoms)
    if not told and system is not None and system.amd_gfx_targets and not _is_for_cpu(torch):
        told = _target_told(torch, system.amd_gfx_targets, devices, symptoms)
    if told:
        yield _reported(*told, torch, system, python)
        return
    if torch is None or system is None:
        raise Skip(f"{'torch' if torch is None else 'system'} is unknown")
    build = known(torch.build, "torch.build")
    skip_unless(build == "cuda", "PyTorch is not a CUDA build")
    gpus = known(system.pci_gpus, "system.pci_gpus") if not system.amd_gfx_targets else system.pci_gpus or ()
    amd = [gpu for gpu in gpus if gpu.vendor == "amd"]
    if devices or nvidia_gpus(system) or not (amd or system.amd_gfx_targets):
        return
    if system.amd_gfx_targets and not _release_for(torch, system.amd_gfx_targets):
        return
    name = gpu_name(amd[0]) if amd else f"an AMD GPU ({(system.amd_gfx_targets or ('',))[0]})"
    yield Finding(
        severity=Severity.ERROR if system.amd_gfx_targets else Severity.WARNING,
        summary=f"PyTorch {torch.version or ''} is built for CUDA {torch.cuda_version or ''}".strip().replace("  ", " ")
        + f", and the GPU is {name}",
        subject="PyTorch",
        facts=("torch.build", "system.amd_gfx_targets" if system.amd_gfx_targets else "system.pci_gpus"),
        remedies=(_install(torch, system, python),),
    )


def _told(
    torch: Torch | None, devices: tuple[Device, ...] | None, symptoms: tuple[Symptom, ...] | None
) -> tuple[tuple[str, ...], str, str] | None:
    """Return the facts, the GPU and its gfx target of a report that asks for CUDA on a machine with an AMD GPU alone.

    Graphics parts of processors are named beside NVIDIA GPUs too; only names of which the gfx target is known count,
    and the words "AMD GPU" without a name (the target is then ""), where nothing names one of NVIDIA.
    """
    asked = reported(symptoms, *ASKED)[:1]
    if not asked or devices or reported(symptoms, "nvidia-gpu-named") or (torch is not None and torch.build == "rocm"):
        return None
    for fact, message in reported(symptoms, "amd-gpu-named"):
        target = gfx_target_of(message.text) or gfx_target_of(f"RX {message.text}")
        if target is not None:
            name = message.names.get("pci") or message.names.get("device") or message.text
            return (asked[0][0], fact), name, target
    said = reported(symptoms, "amd-gpu-told")[:1]
    products = [message for _, message in reported(symptoms, "amd-gpu-named") if re.search(r"\d", message.text)]
    return ((asked[0][0], said[0][0]), "one", "") if said and not products else None


def _target_told(
    torch: Torch | None,
    targets: tuple[str, ...],
    devices: tuple[Device, ...] | None,
    symptoms: tuple[Symptom, ...] | None,
) -> tuple[tuple[str, ...], str, str] | None:
    """Return as `_told` what a report says that names the gfx target and no product."""
    asked = reported(symptoms, *ASKED)[:1]
    if not asked or devices or reported(symptoms, "nvidia-gpu-named") or (torch is not None and torch.build == "rocm"):
        return None
    return (asked[0][0], "system.amd_gfx_targets"), "one", targets[0]


def _is_for_cpu(torch: Torch | None) -> bool:
    return torch is not None and torch.build == "cpu"


def _reported(
    facts: tuple[str, ...], name: str, target: str, torch: Torch | None, system: System | None, python: Python | None
) -> Finding:
    version = f"PyTorch {torch.version}" if torch is not None and torch.version is not None else "PyTorch"
    machine = replace(system or System(), amd_gfx_targets=(target,) if target else None)
    return Finding(
        severity=Severity.ERROR,
        summary=f"{version} asks for NVIDIA's CUDA, and the GPU is {name} of AMD{f' ({target})' if target else ''}",
        subject="PyTorch",
        facts=facts,
        remedies=(_install(torch or Torch(), machine, python),),
    )


def _release_for(torch: Torch, targets: tuple[str, ...]) -> str | None:
    """Return the PyTorch release whose ROCm build has code for one of `targets`: that installed, else a newer one."""
    installed = torch.version.minor_release if torch.version is not None else ""
    for release in (installed, FALLBACK_RELEASE):
        builds = rocm_builds(release)
        if builds is not None and builds.variants and set(builds.gfx_targets or ()) & set(targets):
            return release
    return None


def _install(torch: Torch, system: System, python: Python | None) -> Remedy:
    release = _release_for(torch, system.amd_gfx_targets or ())
    release = release or (torch.version.minor_release if torch.version is not None else FALLBACK_RELEASE)
    builds = rocm_builds(release) or rocm_builds(FALLBACK_RELEASE)
    if system.os not in (None, "linux") or builds is None or not builds.variants:
        return Remedy(
            summary="Install a ROCm build of PyTorch, which PyTorch has for Linux (or WSL); for Windows AMD has its "
            "own, for RX 7000 and 9000, and torch-directml runs on older cards",
            reference="https://rocm.docs.amd.com/projects/radeon-ryzen/en/latest/",
        )
    variant = builds.variants[-1]
    index = f"https://download.pytorch.org/whl/{variant}"
    return Remedy(
        summary=f"Install PyTorch {builds.release} built for {variant}",
        commands=(
            python_command(python, "-m", "pip", "uninstall", "--yes", "torch", "torchvision", "torchaudio"),
            python_command(python, "-m", "pip", "install", f"torch=={builds.release}.*", "--index-url", index),
            python_command(python, "-c", "import torch; print(torch.version.hip, torch.cuda.is_available())"),
        ),
        reference=INSTALL,
    )
