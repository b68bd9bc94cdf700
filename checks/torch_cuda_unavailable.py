"""PyTorch finds no GPU although one is there."""

from collections.abc import Iterator

from gpudoctor.model import CudaIntent, Finding, Fix, Gpu, Origin, Place, Pytorch
from gpudoctor.registry import check, known, skip_unless
from gpudoctor.symptoms import Symptoms, of_kind, with_code


@check(family="torch", explains=("runs-on-cpu", "cuda-no-device"))
def torch_cuda_unavailable(
    pytorch: Pytorch, gpu: Gpu, cuda_intent: CudaIntent, origin: Origin, place: Place, symptoms: Symptoms = None
) -> Iterator[Finding]:
    """PyTorch is built for CUDA and the machine has a GPU, but torch.cuda.is_available() is false.

    Why: programs silently fall back to the CPU, or fail at their first CUDA call. This is the symptom: if gpudoctor
    knows the cause, that finding is first and this one follows from it.
    Exception: builds without CUDA and machines without an NVIDIA GPU have their own checks. A report often names
    neither the GPU nor the build: then a program that asks for CUDA, or an error of PyTorch, is enough.
    Reference: https://docs.pytorch.org/docs/stable/generated/torch.cuda.is_available.html
    """
    available = known(pytorch.available, "torch_runtime.available")
    error = pytorch.availability_error or ""
    wanted = cuda_intent.program
    if not wanted:
        known(pytorch.build_read, "torch.build")
    skip_unless(pytorch.build_read in (None, "cuda"), "PyTorch is not built for CUDA")
    if available and not error:
        return
    skip_unless(not place.is_mac, "macOS has no CUDA")
    if not (origin.is_report and (wanted or error)):
        known(gpu.present, "devices")
    skip_unless(gpu.present != "", "there is no NVIDIA GPU")
    if not error and gpu.present is None and of_kind(symptoms, "torch-on-cpu"):
        return  # a program said so, and nothing else is known: runs-on-cpu reports it
    said = error or "torch.cuda.is_available() is False without an error message"
    no_device = bool(with_code(symptoms, "cuda-100"))
    yield Finding.error(
        pytorch.subject,
        f"PyTorch cannot use {gpu.present or 'a GPU'}: {said}",
        (
            "torch_runtime.available",
            "torch_runtime.availability_error" if error else "",
            wanted if wanted and not error else "",
        ),
        Fix("ask-driver-and-pytorch"),
        *(_usual_fixes(pytorch, place, no_device) if origin.is_report else ()),
    )


def _usual_fixes(pytorch: Pytorch, place: Place, no_device: bool) -> Iterator[Fix]:
    """Yield the fixes of the usual reasons that a report leaves open, most likely first."""
    if pytorch.build_read is None:
        yield Fix("install-torch")
    if no_device:
        yield Fix("show-first-gpu")
    if place.in_container:
        yield Fix("start-container-with-gpu")
    yield Fix("make-driver-answer")
