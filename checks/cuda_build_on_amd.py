"""A CUDA build of PyTorch and an AMD GPU."""

from collections.abc import Iterator

from gpudoctor.data.rocm import rocm_builds
from gpudoctor.model import AmdGpu, CudaIntent, Devices, Finding, Fix, Pytorch, Severity, System
from gpudoctor.registry import DRIVER_FAILS, check, known, skip_unless
from gpudoctor.symptoms import Symptoms, of_kind, pasted
from gpudoctor.symptoms.answers import answers

# A release whose ROCm builds and gfx targets are in the table, for a torch whose own release has none.
FALLBACK_RELEASE = "2.13"
# What a program prints that asks for CUDA; without a driver of NVIDIA old releases call it insufficient.
ASKED = (
    "asks-for-cuda",
    "cuda-packages-listed",
    "torch-no-driver",
    "torch-not-compiled-with-cuda",
    "cuda-insufficient-driver",
    "torch-driver-too-old",
)


@check(
    family="vendor",
    explains=(
        *(*DRIVER_FAILS, "torch-cuda-unavailable", "no-nvidia-gpu", "torch-cpu-build", "wsl-driver-problem"),
        *("windows-pypi-cpu-wheel", "container-without-gpu", "container-setup-without-gpu"),
        *("container-torch-cpu-build", "runs-on-cpu"),
    ),
)
def cuda_build_on_amd(
    pytorch: Pytorch,
    amd_gpu: AmdGpu,
    cuda_intent: CudaIntent,
    system: System = System(),
    devices: Devices = None,
    symptoms: Symptoms = None,
) -> Iterator[Finding]:
    """PyTorch is built for NVIDIA's CUDA, but the GPU is an AMD GPU.

    Why: a PyTorch build supports one vendor. An AMD GPU needs a ROCm build. PyPI has none: PyTorch's own index has them
    for Linux, AMD's index for Windows.
    Exception: a machine that also has an NVIDIA GPU passes. So does an AMD GPU for which no ROCm build has code, such
    as most integrated GPUs. If the gfx target of the GPU is unknown, this is a warning.
    Reference: https://pytorch.org/get-started/locally/
    """
    if answered := answers(symptoms, "cuda-build-on-amd"):
        yield answered[0]
        return
    for_cpu = pytorch.build_read == "cpu"
    skip_unless(not (for_cpu and cuda_intent.rocm_index), "a CPU build was installed instead of ROCm")
    said = pasted(symptoms)
    skip_unless(not of_kind(said, "no-gpu-on-colab"), "the program runs on Colab or Kaggle, which have no AMD GPUs")
    asked = of_kind(said, *ASKED)
    if asked and not devices and not of_kind(said, "nvidia-gpu-named") and pytorch.build != "rocm":
        fact, target = amd_gpu.product_fact or amd_gpu.said, amd_gpu.product_target
        if not fact and amd_gpu.targets and not for_cpu:
            fact, target = amd_gpu.fact, amd_gpu.targets[0]
        if fact:
            name = f"{amd_gpu.product or 'an AMD GPU'}{f' ({target})' if target else ''}"
            who = "A program" if pytorch.says_cpu else pytorch.label
            summary = f"{who} asks for NVIDIA's CUDA, but the GPU is {name}"
            yield Finding.error("PyTorch", summary, (asked[0].fact, fact), Fix("install-torch-for-rocm", target=target))
            return
    skip_unless(known(pytorch.build, "torch.build") == "cuda", "PyTorch is not a CUDA build")
    system, targets = known(system, "system"), amd_gpu.targets
    gpus = (system.pci_gpus or ()) if targets else known(system.pci_gpus, "system.pci_gpus")
    amd = [gpu for gpu in gpus if gpu.vendor == "amd"]
    if devices or system.nvidia_gpus or not (amd or targets) or (targets and not _has_build(pytorch, targets)):
        return
    cuda = f" {pytorch.cuda_version}" if pytorch.cuda_version else ""
    severity = Severity.ERROR if targets else Severity.WARNING
    summary = f"{pytorch.label} is built for CUDA{cuda}, but the GPU is " + (
        amd[0].label if amd else f"an AMD GPU ({(targets or ('',))[0]})"
    )
    facts = (*pytorch.paths("build"), amd_gpu.fact if targets else "system.pci_gpus")
    yield Finding.of(severity, "PyTorch", summary, facts, Fix("install-torch-for-rocm"))


def _has_build(pytorch: Pytorch, targets: tuple[str, ...]) -> bool:
    releases = (pytorch.version.minor_release if pytorch.version is not None else "", FALLBACK_RELEASE)
    builds = (rocm_builds(release) for release in releases)
    return any(found and found.variants and set(found.gfx_targets or ()) & set(targets) for found in builds)
