"""Whether the machine has an NVIDIA GPU at all."""

from collections.abc import Iterator

from gpudoctor.model import Consumers, DriverState, Finding, Fix, GpuNeed, Place, Pytorch, Severity, Symptom, System
from gpudoctor.registry import CUDA_FAILS, DRIVER_FAILS, check, known, skip_unless
from gpudoctor.symptoms.answers import answers

VENDORS = {"amd": "AMD", "intel": "Intel"}
ELSEWHERE = (Fix("move-to-nvidia-gpu"), Fix("leave-cuda-build"))
OF_THE_KERNEL = ("nvrm-no-gpu", "kernel-module-not-inserted")


@check(
    family="driver",
    explains=(
        *(*CUDA_FAILS, *DRIVER_FAILS, "torch-cpu-build", "windows-pypi-cpu-wheel", "libcuda-not-on-linker-path"),
        *("cuda-visible-devices-hides-gpu", "nvidia-container-toolkit-missing", "container-engine-cannot-give-gpu"),
        *("container-setup-hides-gpu", "container-torch-cpu-build"),
        *("cupy-wrong-cuda-package", "cupy-cuda-libs-missing", "cupy-nvrtc-missing"),
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

    Why: a CUDA build of PyTorch or CuPy needs an NVIDIA GPU. Without one PyTorch silently uses the CPU, and CuPy does
    not work. This is an error if the environment is meant for a GPU: a CUDA build, CuPy, a CUDA toolkit, a container
    that asks for one. It is a warning if nothing installed needs one. --gpu required always makes it an error; --gpu
    optional makes it advice.
    Exception: WSL and Jetson boards have no GPU on the PCI bus. macOS has supported no NVIDIA GPU since 10.14.
    Reference: https://docs.nvidia.com/cuda/cuda-installation-guide-linux/#verify-you-have-a-cuda-capable-gpu
    """
    elsewhere = answers((gpu_need.denied,), "no-nvidia-gpu") if gpu_need.denied is not None else ()
    skip_unless(not place.is_mac or elsewhere or driver_state.not_found, "macOS has no NVIDIA GPUs")
    skip_unless(not place.is_tegra, "the GPU of a Jetson is not on the PCI bus")
    skip_unless(pytorch.build != "rocm", "PyTorch is built for AMD")
    if gpu_need.answers:
        return
    if elsewhere:
        yield elsewhere[0]
        return
    if gpu_need.denied is not None and system.pci_gpus is None:
        yield _denied(gpu_need.denied, asked=gpu_need.asked is not False)
        return
    if place.is_mac and driver_state.not_found and not system.nvidia_gpus:
        summary = "A CUDA build of PyTorch runs on a Mac and finds no NVIDIA driver"
        yield Finding.warning("GPU", summary, (driver_state.not_found.fact,), Fix("leave-cuda-on-mac"))
        return
    skip_unless(not place.in_wsl, "WSL shows no PCI bus")
    if known(system.nvidia_gpus, "system.pci_gpus"):
        return
    missing = f"No {'NVIDIA ' if system.pci_gpus else ''}GPU found on this machine"
    summary = f"{missing}{_others(system)}{_user(pytorch, consumers, gpu_need)}"
    facts = ("system.pci_gpus", pytorch.facts["build"] if pytorch.build else "", gpu_need.meant_fact)
    yield Finding.of(gpu_need.severity, "GPU", summary, facts, *_fixes(gpu_need), no_usable_gpu=True)


def _fixes(need: GpuNeed) -> tuple[Fix, ...]:
    if need.asked:
        return ELSEWHERE
    optional = () if need.required else (Fix("gpu-is-optional"),)
    move = (Fix("move-to-nvidia-gpu"),) if need.meant or need.required else ()
    return (*move, *(optional if need.meant or need.unneeded else ()))


def _denied(said: Symptom, *, asked: bool) -> Finding:
    by_kernel = said.kind in OF_THE_KERNEL
    summary = f'The report says that there is no NVIDIA GPU: "{said.text}"'
    if said.kind == "other-gpu-named":
        name = said.names.get("gpu", said.text)
        summary = f'A program looks for an NVIDIA GPU, but the only GPU in the report is "{name}"'
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
    return f", only {' and '.join(others)} GPUs" if others else ""


def _user(pytorch: Pytorch, consumers: Consumers, need: GpuNeed) -> str:
    if pytorch.build == "cuda":
        return ", but a program has a CUDA build" if pytorch.says_cpu else f", but {pytorch.label} is a CUDA build"
    if consumers.ask_for_cuda:
        return ", but CuPy is installed"
    if need.meant:
        return f", but {need.meant}"
    if need.required:
        return ", but one is required"
    return "; nothing installed here needs one" if need.unneeded else ""
