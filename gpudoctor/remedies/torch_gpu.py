"""Finding out why PyTorch cannot use the GPU, and the usual fixes."""

from __future__ import annotations

from gpudoctor.model import Python, Pytorch, Remedy, System
from gpudoctor.remedies.commands import python_command
from gpudoctor.remedies.fixes import fix
from gpudoctor.remedies.variables import set_variable

INITIALISE = (
    "import os, torch; print(torch.__version__, torch.version.cuda, os.environ.get('CUDA_VISIBLE_DEVICES')); "
    "torch.cuda.init(); print(torch.cuda.get_device_name(0))"
)


@fix
def ask_driver_and_pytorch(*, python: Python | None, pytorch: Pytorch) -> Remedy:
    """Return how to see whether the driver answers, and what PyTorch says."""
    hint = "; None as its CUDA version means a build without CUDA" if pytorch.build_read is None else ""
    return Remedy(
        summary=f"Check whether the driver answers, then what PyTorch says when it initialises CUDA{hint}",
        commands=("nvidia-smi", python_command(python, "-c", INITIALISE)),
    )


@fix
def show_first_gpu(*, system: System | None) -> Remedy:
    """Return how to make the first GPU visible, if something hides all of them."""
    return set_variable(
        system=system,
        name="CUDA_VISIBLE_DEVICES",
        value="0",
        summary="If nvidia-smi lists the GPU, look for what hides it: CUDA_VISIBLE_DEVICES with the number of a GPU "
        "that this machine does not have, in the shell, in the job's script, or set by the program itself "
        "(os.environ): the first GPU is 0",
    )


@fix
def make_driver_answer() -> Remedy:
    """Return what to do if nvidia-smi fails or the driver is too old."""
    return Remedy(
        summary="If nvidia-smi fails or is not there, install the NVIDIA driver, or reboot after an update of it; if "
        "its CUDA version is lower than the one that PyTorch was built with, update the driver or install a build for "
        "an older CUDA",
        reference="https://docs.nvidia.com/deploy/cuda-compatibility/",
    )


@fix
def multiply_again(*, python: Python | None, device: str) -> Remedy:
    """Return how to repeat the product on the device."""
    multiply = f"import torch; a = torch.randn(256, 256, device='{device}'); print((a @ a).sum().item())"
    return Remedy(
        summary="Multiply once more, with kernels that report their errors where they happen",
        commands=(python_command(python, "-c", multiply),),
    )


@fix
def look_for_hardware_errors(*, system: System | None) -> Remedy:
    """Return how to look for errors of a GPU that computes wrong numbers."""
    linux = system is None or system.os in (None, "linux")
    return Remedy(
        summary="Take back any overclocking, then look for memory errors, and for Xid errors in the kernel log",
        commands=(
            "nvidia-smi -q -d ECC,TEMPERATURE",
            *(("sudo dmesg | grep -iE 'NVRM|Xid'",) if linux else ()),
        ),
        needs=("root",) if linux else (),
        reference="https://docs.nvidia.com/deploy/gpu-debug-guidelines/index.html",
    )
