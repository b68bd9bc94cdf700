"""PyTorch finds no GPU where one is there."""

from collections.abc import Iterator

from gpudoctor.model import Device, Driver, Finding, Python, Remedy, Severity, System, Torch, TorchRuntime
from gpudoctor.reasoning.usable_devices import present_gpu
from gpudoctor.registry import applies, check, known
from gpudoctor.remedies import python_command


@check(family="torch")
def torch_cuda_unavailable(
    torch_runtime: TorchRuntime,
    torch: Torch | None = None,
    devices: tuple[Device, ...] | None = None,
    driver: Driver | None = None,
    system: System | None = None,
    python: Python | None = None,
) -> Iterator[Finding]:
    """PyTorch is built for CUDA and a GPU is there, but torch.cuda.is_available() is false.

    Why: programs fall back to the CPU, silently, or end at their first CUDA call. This is the symptom; where gpudoctor
    knows the cause, that finding comes first and this one follows from it.
    Exception: builds without CUDA and machines without an NVIDIA GPU have findings of their own.
    Reference: https://docs.pytorch.org/docs/stable/generated/torch.cuda.is_available.html
    """
    available = known(torch_runtime.available, "torch_runtime.available")
    applies(_built_for_cuda(torch_runtime, torch), "PyTorch is not built for CUDA")
    error = torch_runtime.availability_error or ""
    if available and not error:
        return
    gpu = known(present_gpu(devices, driver, system), "devices")
    applies(gpu, "no NVIDIA GPU is there")
    version = torch_runtime.version or (torch.version if torch is not None else None)
    yield Finding(
        severity=Severity.ERROR,
        summary=f"PyTorch cannot use {gpu}: {error or 'torch.cuda.is_available() is False and names no error'}",
        subject=f"torch {version}" if version else "torch",
        facts=("torch_runtime.available", *(("torch_runtime.availability_error",) if error else ())),
        remedies=(
            Remedy(
                summary="See whether the driver answers, then what PyTorch says on initialising CUDA",
                commands=(
                    "nvidia-smi",
                    python_command(
                        python, "-c", "import torch; torch.cuda.init(); print(torch.cuda.get_device_name(0))"
                    ),
                ),
            ),
        ),
    )


def _built_for_cuda(torch_runtime: TorchRuntime, torch: Torch | None) -> bool:
    if torch_runtime.cuda_version is not None:
        return True
    return known(torch.build if torch is not None else None, "torch.build") == "cuda"
