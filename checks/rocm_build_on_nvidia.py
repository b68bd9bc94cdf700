"""A ROCm build of PyTorch and an NVIDIA GPU."""

from collections.abc import Iterator

from gpudoctor.data.rocm import gfx_target_of
from gpudoctor.model import Devices, Finding, Fix, Pytorch, System
from gpudoctor.registry import Skip, check, known, skip_unless
from gpudoctor.symptoms import Symptoms, of_kind
from gpudoctor.symptoms.answers import answers


@check(
    family="vendor", explains=("torch-cuda-unavailable", "rocm-unsupported-gfx", "rocm-stack-incomplete", "runs-on-cpu")
)
def rocm_build_on_nvidia(
    pytorch: Pytorch, system: System = System(), devices: Devices = None, symptoms: Symptoms = None
) -> Iterator[Finding]:
    """PyTorch is built for AMD's ROCm, but the GPU is an NVIDIA GPU.

    Why: a PyTorch build supports one vendor. With a GPU of the other one, torch.cuda.is_available() is False.
    Exception: a machine that also has an AMD GPU passes, unless PyTorch sees no GPU and the AMD GPU is integrated in
    the processor: most ROCm builds have no code for those.
    Reference: https://pytorch.org/get-started/locally/
    """
    if answered := answers(symptoms, "rocm-build-on-nvidia"):
        yield answered[0]
        return
    skip_unless(known(pytorch.build, "torch.build") == "rocm", "PyTorch is not a ROCm build")
    gpus = system.nvidia_gpus or ()
    amd = [gpu for gpu in system.pci_gpus or () if gpu.vendor == "amd"]
    if system.amd_gfx_targets or of_kind(symptoms, "amd-gpu-named", "rocm-gfx-target"):
        return
    if gpus and any(pytorch.available is not False or gfx_target_of(gpu.name) for gpu in amd):
        return
    named = of_kind(symptoms, "nvidia-gpu-named", "nvidia-gpu-owned")
    if not gpus and not devices and not named:
        if system.pci_gpus is None:
            raise Skip("system.pci_gpus is unknown")
        return
    name = gpus[0].label if gpus else (devices[0].name if devices and devices[0].name else "an NVIDIA GPU")
    fact = "system.pci_gpus" if gpus else "devices[0].nvml_index" if devices else named[0].fact
    rocm = f" {pytorch.hip_version}" if pytorch.hip_version else ""
    summary = f"{pytorch.label} is built for AMD's ROCm{rocm}, but the GPU is {name}"
    yield Finding.error("PyTorch", summary, (*pytorch.paths("build"), fact), Fix("install-torch"))
