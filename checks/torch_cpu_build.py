"""PyTorch's build against the GPU."""

from collections.abc import Iterator

from gpudoctor.data.capabilities import features, is_tegra, runs_on
from gpudoctor.data.torch_builds import torch_builds, torch_releases
from gpudoctor.model import CudaIntent, Device, Devices, Finding, Fix, Gpu, Place, Pytorch, System
from gpudoctor.registry import check, known, skip_unless


@check(
    family="torch", explains=("torch-cuda-unavailable", "torchvision-mismatch", "extension-abi-mismatch", "runs-on-cpu")
)
def torch_cpu_build(
    pytorch: Pytorch,
    gpu: Gpu,
    cuda_intent: CudaIntent,
    place: Place,
    devices: Devices = None,
    system: System = System(),
) -> Iterator[Finding]:
    """PyTorch is built without CUDA, on a machine with an NVIDIA GPU.

    Why: everything runs on the CPU, and .to("cuda") fails with "Torch not compiled with CUDA enabled". The index
    whl/cpu has such builds. So does PyPI for Windows, and for Linux on aarch64 before PyTorch 2.11. Reinstalling does
    not help: pip considers 2.13.0+cpu to satisfy torch==2.13.0.
    Exception: without a GPU, or if no PyTorch build runs on the GPU, a CPU build is right. GPUs that are passed to a
    virtual machine, or that a container did not get, do not count. If a report does not name the GPU, a program that
    asks for CUDA, or an installed CUDA toolkit, is enough.
    Reference: https://pytorch.org/get-started/locally/
    """
    skip_unless(known(pytorch.installed, "torch.installed"), "PyTorch is not installed")
    if known(pytorch.build, "torch.build") != "cpu":
        return
    skip_unless(not place.is_mac, "macOS has no CUDA")
    if not cuda_intent.fact:
        known(gpu.name, "devices")
    likely = pytorch.likely.get("build")
    if cuda_intent.rocm_index and not likely:
        summary = f"{pytorch.label} is built for the CPU, but {cuda_intent.rocm_index} was requested"
        facts = (cuda_intent.rocm_fact,)
        yield Finding.error(pytorch.subject, summary, facts, Fix("check-index-order", variant=cuda_intent.rocm_index))
        return
    if gpu.name == "" or not _has_builds(gpu, devices or ()):
        return
    built = f"is probably built without CUDA ({likely})" if likely else "is built without CUDA"
    default = ", as the default wheel for Linux on aarch64 is" if _is_default(pytorch, system) else ""
    yield Finding.error(
        pytorch.subject,
        f"{pytorch.label} {built}{default}, and " + (f"the GPU is {gpu.name}" if gpu.name else cuda_intent.reason),
        (*pytorch.paths("build", "version"), gpu.fact or cuda_intent.fact),
        Fix("install-torch"),
        Fix("check-index-order", variant=cuda_intent.index) if cuda_intent.index else None,
        certain=not likely,
    )


def _has_builds(gpu: Gpu, devices: tuple[Device, ...]) -> bool:
    """Return whether a build of PyTorch runs on a GPU here, as far as is known."""
    if not gpu.known or len(gpu.known) < len(devices):
        return True
    built_for = {name for build in torch_builds() for name in build.architectures}
    # Builds for Jetson come from NVIDIA, and what is newer than the tables may have builds by now.
    return any(
        runs_on(built_for, known_gpu.capability)
        or is_tegra(known_gpu.capability)
        or features(known_gpu.capability) is None
        for known_gpu in gpu.known
    )


def _is_default(pytorch: Pytorch, system: System) -> bool:
    if pytorch.version is None or (system.os, system.machine) != ("linux", "aarch64"):
        return False
    defaults = {release.release: release.default.get("linux_aarch64") for release in torch_releases()}
    return defaults.get(pytorch.version.minor_release) == "cpu"
