"""Whether an NVIDIA GPU is needed, whether one answers, and evidence that there is none."""

from gpudoctor.model import (
    Devices,
    Driver,
    Environment,
    Origin,
    Project,
    SeenSetup,
    Severity,
    Symptom,
    Toolkit,
    TorchRuntime,
)
from gpudoctor.model.gpu_conclusions import Consumers, DriverState, GpuNeed
from gpudoctor.model.requirement import MachineRequirement
from gpudoctor.symptoms import Symptoms, first, of_kind, with_code

# Symptoms of a kernel module that found a GPU and could not use it, or of another module that uses it.
THERE = ("nvrm-legacy-gpu", "nvrm-probe-not-called", "nvrm-open-module-*", "nvrm-gpu-not-in-release", "nouveau-in-use")
# Symptoms of programs that found no NVIDIA GPU or driver. On a live machine gpudoctor itself calls PyTorch and NVML.
NOT_FOUND = (
    *("torch-not-compiled-with-cuda", "nvidia-smi-not-found", "nvml-*"),
    *("container-no-device-driver", "container-wsl-no-adapters"),
)
NOT_LISTED = "no-gpu-in-windows-list"
# Symptoms of places without a GPU, whatever GPU the report names; of places that may have one; of people's words.
PLACES = (
    "nvidia-container-on-mac",
    "cuda-packages-on-mac",
    "no-gpu-in-vm",
    "no-gpu-in-vm-reported",
    "no-gpu-in-slurm-command",
    "no-gpu-in-slurm-allocation",
    NOT_LISTED,
)
NOTEBOOK = ("no-gpu-on-colab", "no-gpu-in-slurm-*")
MACHINE = "no-gpu-on-machine"
# Packages that are useless without an NVIDIA GPU.
GPU_PACKAGES = ("cupy", "cupy-cuda*", "onnxruntime-gpu", "tensorflow-gpu", "flash-attn", "tensorrt*", "cudf-*")

# Requirements that a machine without a GPU can meet.
WITHOUT_GPU = ("python", "torch", "shm", "profile")


def gpu_need(
    origin: Origin,
    consumers: Consumers,
    driver_state: DriverState,
    driver: Driver,
    devices: Devices,
    torch_runtime: TorchRuntime,
    toolkit: Toolkit,
    setups: tuple[SeenSetup, ...],
    project: Project,
    symptoms: Symptoms,
    environment: Environment = Environment(),
    requirements: tuple[MachineRequirement, ...] = (),
    gpu_policy: str = "auto",
) -> GpuNeed:
    """Return whether an NVIDIA GPU is needed, and whether there is one.

    A kernel module stays loaded only if it found a GPU, even on a hidden bus. Slurm may give a job no GPU.
    """
    available = torch_runtime.available
    withheld = bool(of_kind(symptoms, "nvidia-smi-no-devices") and of_kind(symptoms, "no-gpu-in-slurm-*"))
    missed = (
        withheld
        or driver_state.not_found is not None
        or bool(with_code(symptoms, "cuda-100", "cuda-35"))
        or (origin.is_report and bool(of_kind(symptoms, *NOT_FOUND)))
        # A CPU build does not look for a driver.
        or (available is False and consumers.ask_for_cuda is not False)
    )
    loaded = bool(driver.module_loaded) and not withheld
    module = loaded or bool(with_code(symptoms, "nvml-18"))
    version_known = driver.version is not None or loaded
    # CUDA also fails with 999 if the driver has no GPU.
    questioned = of_kind(symptoms, "no-nvidia-gpu-asked") and of_kind(symptoms, "no-nvidia-gpu-reported")
    asked = consumers.ask_for_cuda or missed or bool(with_code(symptoms, "cuda-999") or questioned)
    seen = bool(devices) and not of_kind(symptoms, NOT_LISTED)  # the report may name a GPU that Windows does not list
    required = next((requirement.text for requirement in requirements if requirement.name not in WITHOUT_GPU), "")
    meant, fact = (f"{required} is required", "") if required else _meant(toolkit, setups, project)
    return GpuNeed(
        asked=asked,
        meant=meant,
        meant_fact=fact,
        required=bool(required) or gpu_policy == "required",
        unneeded=not (origin.is_report or asked or meant),
        severity=_severity(origin, asked=bool(asked), needed=bool(consumers.ask_for_cuda or meant)),
        answers=seen or driver_state.works or module or bool(available),
        denied=_denied(symptoms, environment, missed=missed and not version_known),
    )


def _meant(toolkit: Toolkit, setups: tuple[SeenSetup, ...], project: Project) -> tuple[str, str]:
    """Return what shows, apart from PyTorch and CuPy, that the environment needs a GPU, with its fact."""
    if toolkit.nvcc_version is not None:
        return f"the CUDA toolkit {toolkit.nvcc_version} is installed", "toolkit.nvcc_version"
    asking = next((seen for seen in setups if seen.gpu_intent is not None), None)
    if asking is not None and asking.gpu_intent is not None:
        return f"the {asking.label} asks for one", asking.gpu_intent.fact
    required = project.always_requires(*GPU_PACKAGES)
    return (f"the project requires {required.name}", "project.requirements") if required is not None else ("", "")


def _severity(origin: Origin, *, asked: bool, needed: bool) -> Severity:
    """Return the severity of a missing GPU. A pasted report has no requirements."""
    if origin.is_report:
        return Severity.WARNING if asked else Severity.INFO
    return Severity.ERROR if needed else Severity.WARNING


def _denied(symptoms: Symptoms, environment: Environment, *, missed: bool) -> Symptom | None:
    """Return the evidence that there is no NVIDIA GPU.

    missed: a program misses the GPU or its driver, and no driver is known: then another vendor's GPU is evidence too.
    """
    hidden = with_code(symptoms, "cuda-100") and of_kind(symptoms, "gpu-runtime-chosen")
    # "too old" implies an installed driver.
    hidden = hidden or tuple(symptom for symptom in with_code(symptoms, "cuda-35") if symptom.names.get("cuda"))
    unexplained = missed and not hidden and environment.get("CUDA_VISIBLE_DEVICES") != "-1"
    missed = missed or bool(of_kind(symptoms, "cpu-fallback"))
    elsewhere = of_kind(symptoms, *PLACES) or (of_kind(symptoms, *NOTEBOOK) if unexplained else ())
    if elsewhere:
        return elsewhere[0]
    said = of_kind(symptoms, "no-nvidia-gpu-reported")
    if said or of_kind(symptoms, "nvidia-gpu-named"):
        return first(said)
    if missed and of_kind(symptoms, MACHINE):
        return first(of_kind(symptoms, MACHINE))
    by_kernel = of_kind(symptoms, "nvrm-no-gpu") or tuple(
        refused
        for refused in of_kind(symptoms, "kernel-module-not-inserted")
        if refused.names.get("reason") == "No such device"
    )
    if by_kernel and not of_kind(symptoms, *THERE):
        return by_kernel[0]
    return first(of_kind(symptoms, "other-gpu-named")) if missed and not of_kind(symptoms, "nvidia-gpu-owned") else None
