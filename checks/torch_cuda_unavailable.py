"""PyTorch finds no GPU where one is there."""

from collections.abc import Iterator

from gpudoctor.conclusions.error_codes import NO_DEVICE, cuda_error, in_container
from gpudoctor.conclusions.gpu import gpu as present_gpu
from gpudoctor.conclusions.installed import Machine, whole_torch
from gpudoctor.conclusions.torch_requests import cuda_wanted
from gpudoctor.model import (
    Device,
    Driver,
    Finding,
    Origin,
    Python,
    Remedy,
    Severity,
    Symptom,
    System,
    Torch,
    TorchRuntime,
)
from gpudoctor.registry import check, known, skip_unless
from gpudoctor.remedies import python_command, set_variable, start_container_with_gpu

FIND_OUT = (
    "import os, torch; print(torch.__version__, torch.version.cuda, os.environ.get('CUDA_VISIBLE_DEVICES')); "
    "torch.cuda.init(); print(torch.cuda.get_device_name(0))"
)


@check(family="torch")
def torch_cuda_unavailable(
    origin: Origin,
    torch_runtime: TorchRuntime,
    torch: Torch | None = None,
    devices: tuple[Device, ...] | None = None,
    driver: Driver | None = None,
    system: System | None = None,
    python: Python | None = None,
    symptoms: tuple[Symptom, ...] | None = None,
) -> Iterator[Finding]:
    """PyTorch is built for CUDA and a GPU is there, but torch.cuda.is_available() is false.

    Why: programs fall back to the CPU, silently, or end at their first CUDA call. This is the symptom; where gpudoctor
    knows the cause, that finding comes first and this one follows from it.
    Exception: builds without CUDA and machines without an NVIDIA GPU have findings of their own. A report often names
    neither the GPU nor the build: there a program that asks for CUDA, or an error of PyTorch, stands for both.
    Reference: https://docs.pytorch.org/docs/stable/generated/torch.cuda.is_available.html
    """
    available = known(torch_runtime.available, "torch_runtime.available")
    error = torch_runtime.availability_error or ""
    whole = whole_torch(torch, torch_runtime)
    gpu = present_gpu(devices, driver, system).present
    wanted = cuda_wanted(symptoms, gpu)
    if whole.build is None and not wanted:
        known(torch.build if torch is not None else None, "torch.build")
    skip_unless(whole.build in (None, "cuda"), "PyTorch is not built for CUDA")
    if available and not error:
        return
    skip_unless(not origin.is_report or system is None or system.os != "darwin", "macOS has no CUDA")
    if gpu is None and not (origin.is_report and symptoms and (wanted or error)):
        known(gpu, "devices")
    skip_unless(gpu != "", "no NVIDIA GPU is there")
    machine = Machine(python=python, system=system, driver=driver, devices=devices)
    no_device = cuda_error(NO_DEVICE, None, torch_runtime, symptoms=symptoms) is not None
    said = error or "torch.cuda.is_available() is False and names no error"
    yield Finding(
        severity=Severity.ERROR,
        summary=f"PyTorch cannot use {gpu or 'a GPU'}: {said}",
        subject=f"torch {whole.version}" if whole.version else "torch",
        facts=(
            "torch_runtime.available",
            *(("torch_runtime.availability_error",) if error else ()),
            *((wanted,) if wanted and not error else ()),
        ),
        remedies=tuple(_remedies(whole, machine, no_device, is_report=origin.is_report)),
    )


def _remedies(whole: Torch, machine: Machine, no_device: bool, *, is_report: bool) -> Iterator[Remedy]:
    """Yield what to find out first, then the usual reasons that the facts leave open, likeliest first."""
    yield Remedy(
        summary="See whether the driver answers, then what PyTorch says on initialising CUDA"
        + ("; None as its CUDA version means a build without CUDA" if whole.build is None else ""),
        commands=("nvidia-smi", python_command(machine.python, "-c", FIND_OUT)),
    )
    if not is_report:
        return
    if whole.build is None:
        yield machine.install_torch(whole)
    if no_device:
        yield set_variable(
            system=machine.system,
            name="CUDA_VISIBLE_DEVICES",
            value="0",
            summary="If nvidia-smi lists the GPU, look what hides it: CUDA_VISIBLE_DEVICES with the number of a GPU "
            "that this machine does not have, in the shell, in the job's script, or set by the program itself "
            "(os.environ): the first GPU is 0",
        )
    if in_container(machine.system):
        yield start_container_with_gpu(system=machine.system)
    yield Remedy(
        summary="If nvidia-smi fails or is not there, install the NVIDIA driver, or reboot after an update of it; "
        "where its CUDA version is lower than the one that PyTorch was built with, update the driver or take a build "
        "for an older CUDA",
        reference="https://docs.nvidia.com/deploy/cuda-compatibility/",
    )
