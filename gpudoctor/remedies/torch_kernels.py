"""Machine code for the GPU: another build of PyTorch, or kernels compiled again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gpudoctor.model import ComputeCapability, Device, Driver, Python, Pytorch, Remedy, System, TorchKernels
from gpudoctor.remedies.commands import python_command
from gpudoctor.remedies.fixes import fix
from gpudoctor.remedies.torch_install import install_torch
from gpudoctor.remedies.variables import set_variable, show_devices

ASK_GPU = "nvidia-smi --query-gpu=name,compute_cap,driver_version --format=csv"
ASK_BUILD = "import torch; print(torch.__version__, torch.cuda.get_arch_list(), torch.cuda.get_device_capability())"


@fix
def install_torch_or_choose_gpus(
    *,
    python: Python | None,
    system: System | None,
    driver: Driver | None,
    devices: Sequence[Device] | None,
    pytorch: Pytorch,
    torch_kernels: TorchKernels,
) -> tuple[Remedy, ...]:
    """Return how to install a build for all GPUs, and how to show PyTorch only those on which the present one runs."""
    gpus = torch_kernels.gpus
    install = install_torch(python=python, system=system, driver=driver, devices=devices, pytorch=pytorch, gpus=gpus)
    works = {gpu.capability for gpu, runs in zip(gpus, torch_kernels.runs, strict=True) if runs}
    devices = devices or [
        Device(nvml_index=n, name=gpu.name, compute_capability=gpu.capability) for n, gpu in enumerate(gpus)
    ]
    working = [device.nvml_index for device in devices if device.compute_capability in works]
    summary = "Let PyTorch see only the GPUs that it runs on"
    show = (show_devices(system=system, nvml_indices=working, summary=summary),) if working else ()
    return (*((install,) if install.commands or not works else ()), *show)


@fix
def compile_extension_for_gpu(*, system: System | None, capability: ComputeCapability | None = None) -> Remedy:
    """Return how to compile an extension for the GPU; if that is unknown the number is to be looked up."""
    remedy = set_variable(
        system=system,
        name="TORCH_CUDA_ARCH_LIST",
        value=str(capability) if capability else "<compute capability>",
        summary=("" if capability else "If it is an extension that fails: ")
        + "Compile the extension that fails (flash-attn, xformers, a CUDA kernel of the project) "
        "again for this GPU, with --no-binary and --no-build-isolation, or install its newest release",
    )
    return replace(remedy, reference="https://docs.pytorch.org/docs/stable/cpp_extension.html")


@fix
def use_newer_ptxas(*, system: System | None) -> Remedy:
    """Return how to let Triton use another ptxas."""
    return set_variable(
        system=system,
        name="TRITON_PTXAS_PATH",
        value="/usr/local/cuda/bin/ptxas",
        summary="Let Triton use the ptxas of an installed CUDA toolkit that knows the GPU, or install a newer PyTorch, "
        "which has a newer Triton",
    )


@fix
def compare_compute_capability(*, python: Python | None) -> Remedy:
    """Return how to compare the GPU's compute capability with the build."""
    return Remedy(
        summary="Compare the GPU's compute capability with the list of the build: RTX 50 and newer (12.0) "
        "need a build for cu128 or newer, GTX 10 and older and V100 (5.0 to 7.0) one for cu126 or older, "
        "RTX 30 and 40 (8.6, 8.9) any from cu111 on; Kepler (3.x) only runs builds from source",
        commands=(ASK_GPU, python_command(python, "-c", ASK_BUILD)),
        reference="https://developer.nvidia.com/cuda-gpus",
    )


@fix
def compare_cuda_of_gpu(*, python: Python | None) -> Remedy:
    """Return which CUDA is the first that compiles for a GPU."""
    return Remedy(
        summary="Which CUDA is the first that compiles for a GPU: 11.1 for RTX 30 (8.6), 11.8 for RTX 40 and "
        "Hopper (8.9, 9.0), 12.8 for RTX 50 (12.0); PyTorch's build (cu118, cu128) must be for it or a newer "
        "one, a newer toolkit or driver does not help",
        commands=(ASK_GPU, python_command(python, "-c", ASK_BUILD)),
    )


@fix
def avoid_flash_attention() -> Remedy:
    """Return how to do without FlashAttention 2."""
    return Remedy(
        summary="FlashAttention 2 needs Ampere (RTX 30, A100) or newer: on this GPU do without it, "
        'attn_implementation="sdpa" or "eager", VLLM_ATTENTION_BACKEND=XFORMERS, or without flash-attn installed',
        reference="https://github.com/Dao-AILab/flash-attention#nvidia-cuda-support",
    )
