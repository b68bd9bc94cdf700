"""CUDA error 100 on a machine with a GPU."""

from collections.abc import Iterator

from gpudoctor.model import Driver, Finding, Fix, Gpu, GpuNeed, Place, Pytorch
from gpudoctor.registry import check, skip_unless
from gpudoctor.symptoms import Symptoms, of_kind, with_code


@check(family="cuda", explains=("runs-on-cpu", "cupy-unusable"))
def cuda_no_device(
    gpu: Gpu, gpu_need: GpuNeed, place: Place, pytorch: Pytorch, driver: Driver = Driver(), symptoms: Symptoms = None
) -> Iterator[Finding]:
    """CUDA reports no device (error 100), although the machine has a GPU.

    Why: the driver was loaded but gave the program no GPU. A variable hides it, the container or the batch system did
    not provide it, its device nodes are missing, or the GPU does not start. If gpudoctor knows the cause, that finding
    is first.
    Exception: torch-cuda-unavailable reports PyTorch's own message about it, and no-nvidia-gpu a machine without a GPU.
    Reference: https://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__TYPES.html
    """
    none = with_code(symptoms, "cuda-100")
    skip_unless(none, "CUDA does not report error 100")
    skip_unless(pytorch.available is not False, "torch-cuda-unavailable reports it")
    named = of_kind(symptoms, "nvidia-gpu-named")
    words = "error 100" if none[0].text.isdigit() else none[0].text.rstrip(" :")
    shown = gpu.present or (named[0].text if named else "") or (driver.label if driver.version else "")
    if not shown or gpu_need.denied is not None:
        return
    yield Finding.error(
        "CUDA",
        f"CUDA finds no device although {shown} is there: {words}",
        (none[0].fact, gpu.fact if gpu.present else named[0].fact if named else "driver.version"),
        Fix("look-why-cuda-has-no-device"),
        Fix("start-container-in-its-way-with-gpu") if place.about_container else None,
        Fix("make-driver-answer"),
    )
