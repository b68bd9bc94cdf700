"""Machine code for the GPU: another build of PyTorch, or kernels compiled again."""

from __future__ import annotations

from collections.abc import Sequence

from gpudoctor.model import Device, Driver, Python, Pytorch, Remedy, System, TorchKernels
from gpudoctor.remedies.fixes import fix
from gpudoctor.remedies.torch_install import install_torch
from gpudoctor.remedies.variables import show_devices


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
