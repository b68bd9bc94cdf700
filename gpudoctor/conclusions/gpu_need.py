"""Whether something asks for an NVIDIA GPU, whether one answers, and what says that there is none."""

from gpudoctor.model import Consumers, Device, Driver, DriverState, GpuNeed, Origin, Symptom, TorchRuntime
from gpudoctor.symptoms import Symptoms, first, of_kind, with_code

# Symptoms of a kernel module that found a GPU and could not take it.
THERE = ("nvrm-legacy-gpu", "nvrm-probe-not-called", "nvrm-open-module-*", "nvrm-gpu-not-in-release")
# Symptoms of programs that looked for an NVIDIA GPU, or for its driver, and found none. On a live machine gpudoctor
# itself calls PyTorch and NVML.
NOT_FOUND = ("torch-not-compiled-with-cuda", "nvidia-smi-not-found", "nvml-*", "container-no-device-driver")


def gpu_need(
    origin: Origin,
    consumers: Consumers,
    driver_state: DriverState,
    driver: Driver | None,
    devices: tuple[Device, ...] | None,
    torch_runtime: TorchRuntime | None,
    symptoms: tuple[Symptom, ...] | None,
) -> GpuNeed:
    """Return whether an NVIDIA GPU is asked for, and whether there is one.

    A kernel module stays loaded only if it found a GPU, be it on a hidden bus.
    """
    available = torch_runtime.available if torch_runtime is not None else None
    missed = (
        driver_state.not_found is not None
        or bool(with_code(symptoms, "cuda-100", "cuda-35"))
        or (origin.is_report and bool(of_kind(symptoms, *NOT_FOUND)))
        # A build for the CPU does not look for a driver.
        or (available is False and consumers.ask_for_cuda is not False)
    )
    module = (driver is not None and bool(driver.module_loaded)) or bool(with_code(symptoms, "nvml-18"))
    version_known = driver is not None and (driver.version is not None or bool(driver.module_loaded))
    return GpuNeed(
        # CUDA fails with 999 also on a driver that has no GPU.
        asked=consumers.ask_for_cuda or missed or bool(with_code(symptoms, "cuda-999")),
        answers=bool(devices) or driver_state.works or module or bool(available),
        denied=_denied(symptoms, missed=missed and not version_known),
    )


def _denied(symptoms: Symptoms, *, missed: bool) -> Symptom | None:
    """Return what says that there is no NVIDIA GPU.

    missed: a program misses the GPU or its driver, and no driver is known: then a GPU of another vendor says so too.
    """
    said = of_kind(symptoms, "no-nvidia-gpu-told")
    if said or of_kind(symptoms, "nvidia-gpu-named"):
        return first(said)
    by_kernel = of_kind(symptoms, "nvrm-no-gpu") or tuple(
        refused
        for refused in of_kind(symptoms, "kernel-module-not-inserted")
        if refused.names.get("reason") == "No such device"
    )
    if by_kernel and not of_kind(symptoms, *THERE):
        return by_kernel[0]
    return first(of_kind(symptoms, "other-gpu-named")) if missed else None
