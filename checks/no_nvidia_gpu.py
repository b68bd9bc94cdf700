"""Whether the machine has an NVIDIA GPU at all."""

from collections.abc import Iterator

from gpudoctor.model import Consumers, DriverState, Finding, Fix, GpuNeed, Place, Pytorch, Severity, Symptom, System
from gpudoctor.registry import check, known, skip_unless

VENDORS = {"amd": "AMD", "intel": "Intel"}
ELSEWHERE = (Fix("move-to-nvidia-gpu"), Fix("leave-cuda-build"))
OF_THE_KERNEL = ("nvrm-no-gpu", "kernel-module-not-inserted")


@check(
    family="driver",
    explains=(
        "torch-cuda-unavailable",
        "torch-cpu-build",
        "windows-pypi-cpu-wheel",
        "cupy-unusable",
        "driver-missing",
        "driver-not-loaded",
        "driver-too-old",
        "libcuda-not-on-linker-path",
        "cuda-init-unknown-error-999",
        "cuda-visible-devices-hides-gpu",
        "nvidia-container-toolkit-missing",
        "container-engine-cannot-give-gpu",
        "container-setup-hides-gpu",
        "container-torch-cpu-build",
    ),
)
def no_nvidia_gpu(
    place: Place,
    pytorch: Pytorch,
    consumers: Consumers,
    driver_state: DriverState,
    gpu_need: GpuNeed,
    system: System = System(),
) -> Iterator[Finding]:
    """There is no NVIDIA GPU to use.

    Why: a CUDA build of PyTorch or CuPy runs on an NVIDIA GPU only; without one PyTorch works on the CPU and CuPy
    not at all. If nothing asks for CUDA this is advice, no fault: a CPU build on such a machine is right.
    Exception: WSL and the boards of the Jetson family have no GPU on the PCI bus; macOS has none since 10.14.
    Reference: https://docs.nvidia.com/cuda/cuda-installation-guide-linux/#verify-you-have-a-cuda-capable-gpu
    """
    skip_unless(not place.is_mac or driver_state.not_found, "macOS has no NVIDIA GPUs")
    skip_unless(not place.is_tegra, "the GPU of a Jetson is not on the PCI bus")
    skip_unless(pytorch.build != "rocm", "PyTorch is built for AMD")
    if gpu_need.answers:
        return
    if gpu_need.denied is not None and system.pci_gpus is None:
        yield _denied(gpu_need.denied, asked=gpu_need.asked is not False)
        return
    if place.is_mac and driver_state.not_found and not system.nvidia_gpus:
        yield Finding.warning(
            "GPU",
            "A CUDA build of PyTorch runs on a Mac and finds no NVIDIA driver",
            (driver_state.not_found.fact,),
            Fix("leave-cuda-on-mac"),
        )
        return
    skip_unless(not place.in_wsl, "WSL shows no PCI bus")
    if known(system.nvidia_gpus, "system.pci_gpus"):
        return
    severity = Severity.WARNING if gpu_need.asked else Severity.INFO
    summary = f"The PCI bus holds no NVIDIA GPU{_others(system)}{_user(pytorch, consumers)}"
    facts = ("system.pci_gpus", pytorch.facts["build"] if pytorch.build else "")
    yield Finding.of(severity, "GPU", summary, facts, *(ELSEWHERE if gpu_need.asked else ()))


def _denied(said: Symptom, *, asked: bool) -> Finding:
    by_kernel = said.kind in OF_THE_KERNEL
    summary = f'The report says that there is no NVIDIA GPU: "{said.text}"'
    if said.kind == "other-gpu-named":
        name = said.names.get("gpu", said.text)
        summary = f"A program looks for an NVIDIA GPU, and the report names only {name}"
    elif by_kernel:
        summary = f'The driver\'s kernel module finds no GPU: "{said.text}"'
    return Finding.of(
        Severity.WARNING if asked or by_kernel else Severity.INFO,
        "GPU",
        summary,
        (said.fact,),
        Fix("look-for-gpu-on-bus") if by_kernel else None,
        *(ELSEWHERE if asked or by_kernel else ()),
    )


def _others(system: System) -> str:
    """Return which other GPUs are there: an AMD or Intel one runs no CUDA."""
    others = sorted({VENDORS.get(gpu.vendor, "another vendor") for gpu in system.pci_gpus or ()})
    return f", only GPUs of {' and '.join(others)}" if others else ""


def _user(pytorch: Pytorch, consumers: Consumers) -> str:
    if pytorch.build == "cuda":
        return f", and {pytorch.label} is a CUDA build"
    if consumers.ask_for_cuda:
        return ", and CuPy is installed"
    return "; PyTorch is a CPU build, as it should be" if pytorch.build == "cpu" else ""
