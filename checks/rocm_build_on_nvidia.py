"""A ROCm build of PyTorch and an NVIDIA GPU."""

from collections.abc import Iterator

from gpudoctor.conclusions.error_codes import gpu_name, nvidia_gpus
from gpudoctor.conclusions.messages import reported
from gpudoctor.data.rocm import gfx_target_of
from gpudoctor.model import Device, Driver, Finding, Python, Severity, Symptom, System, Torch, TorchRuntime
from gpudoctor.registry import Skip, check, known, skip_unless
from gpudoctor.remedies import install_torch


@check(family="vendor", explains=("torch-cuda-unavailable", "rocm-unsupported-gfx", "rocm-stack-incomplete"))
def rocm_build_on_nvidia(
    torch: Torch,
    system: System | None = None,
    devices: tuple[Device, ...] | None = None,
    driver: Driver | None = None,
    python: Python | None = None,
    torch_runtime: TorchRuntime | None = None,
    symptoms: tuple[Symptom, ...] | None = None,
) -> Iterator[Finding]:
    """PyTorch is built for AMD's ROCm, and the GPU is of NVIDIA.

    Why: a build of PyTorch is for one vendor; torch.cuda.is_available() is False on the other's GPU.
    Exception: a machine that has an AMD GPU too passes, unless PyTorch sees no GPU and that one is a part of the
    processor, for which most ROCm builds have no code.
    Reference: https://pytorch.org/get-started/locally/
    """
    build = known(torch.build, "torch.build")
    skip_unless(build == "rocm", "PyTorch is not a ROCm build")
    gpus = nvidia_gpus(system) or ()
    if system is not None and system.amd_gfx_targets:
        return
    unseen = torch_runtime is not None and torch_runtime.available is False
    amd = [gpu for gpu in (system.pci_gpus if system is not None else None) or () if gpu.vendor == "amd"]
    if gpus and any(not unseen or gfx_target_of(gpu.name) for gpu in amd):
        return
    if reported(symptoms, "amd-gpu-named", "rocm-gfx-target"):
        return
    named = reported(symptoms, "nvidia-gpu-named", "nvidia-gpu-owned")[:1]
    if not gpus and not devices and not named:
        if system is None or system.pci_gpus is None:
            raise Skip("system.pci_gpus is unknown")
        return
    name = gpu_name(gpus[0]) if gpus else (devices[0].name if devices and devices[0].name else "a GPU")
    fact = "system.pci_gpus" if gpus else "devices[0].nvml_index" if devices else named[0][0]
    yield Finding(
        severity=Severity.ERROR,
        summary=f"PyTorch {torch.version or ''} is built for ROCm {torch.hip_version or ''}".strip().replace("  ", " ")
        + f", and the GPU is {name} of NVIDIA",
        subject="PyTorch",
        facts=("torch.build", fact),
        remedies=(install_torch(python=python, system=system, driver=driver, devices=devices, pytorch=torch),),
    )
