"""Evidence that CUDA or ROCm is wanted."""

import re

from gpudoctor.model import CudaIntent, Gpu, Origin, Python, Symptom, Toolkit
from gpudoctor.symptoms import Symptoms, of_kind, pasted

# Packages that contain CUDA and that nobody installs for a CPU build. Source: channels pytorch and conda-forge.
CUDA_PACKAGES = ("cudatoolkit", "pytorch-cuda", "cuda-version")
# Symptoms of a GPU that CUDA does not run on.
OTHER_GPUS = ("amd-gpu-*", "intel-gpu-named", "other-gpu-named", "apple-mac-named", "no-nvidia-gpu-reported")


def cuda_intent(origin: Origin, gpu: Gpu, toolkit: Toolkit, python: Python, symptoms: Symptoms) -> CudaIntent:
    """Return the evidence in a report that CUDA or ROCm is wanted; probes do not count, because they request CUDA."""
    said = pasted(symptoms)
    if of_kind(said, "topic-cpu-on-purpose"):
        return CudaIntent()
    program = _program(said, gpu)
    cuda, cuda_fact = _index(said, "cu")
    rocm, rocm_fact = _index(said, "rocm")
    extensions = of_kind(said, "xformers-built-for")
    missed = () if of_kind(said, *OTHER_GPUS) else ("asks-gpu-unused",)
    ways = (
        (_first(said, "@program-wants-cuda"), "a program asks for CUDA"),
        (program, "the program should use the GPU"),
        (_first(said, "nvidia-gpu-named", "nvidia-gpu-owned"), "the report names an NVIDIA GPU"),
        (_toolkit(toolkit, origin), f"the CUDA toolkit {toolkit.nvcc_version if toolkit else ''} is installed"),
        (cuda_fact, f"PyTorch's index {cuda} was requested"),
        (next((s.fact for s in extensions if "+cu" in s.names.get("built", "")), ""), "xformers is built for CUDA"),
        (_first(said, *missed), "the user says that the GPU is not used"),
    )
    fact, reason = next(((fact, reason) for fact, reason in ways if fact), ("", ""))
    conda, conda_reason = _conda(said, python)
    return CudaIntent(
        fact=fact,
        reason=reason,
        program=program,
        index=cuda,
        rocm_index=rocm,
        rocm_fact=rocm_fact,
        conda=conda,
        conda_reason=conda_reason,
    )


def _program(said: tuple[Symptom, ...], gpu: Gpu) -> str:
    """Return the message or complaint. Computing on the CPU is a complaint only if there is a GPU."""
    complaints = () if of_kind(said, "cpu-chosen") else ("cpu-use-reported", "gpu-unused-reported")
    return _first(said, "@program-wants-cuda", *complaints, *(("torch-on-cpu",) if gpu.name else ()))


def _first(said: tuple[Symptom, ...], *kinds: str) -> str:
    return next((symptom.fact for symptom in of_kind(said, *kinds)), "")


def _toolkit(toolkit: Toolkit, origin: Origin) -> str:
    """Return the fact that shows a CUDA toolkit, which nobody installs without a GPU."""
    shown = origin.is_report and toolkit.nvcc_version is not None
    return "toolkit.nvcc_version" if shown else ""


def _index(said: tuple[Symptom, ...], variant: str) -> tuple[str, str]:
    """Return the PyTorch index for this kind of variant in a message, and the message."""
    for symptom in of_kind(said, "pip-index"):
        last = symptom.names.get("variant", "").rstrip("/").rpartition("/")[2]
        if re.fullmatch(rf"{variant}\d[\d.]*", last):
            return last, symptom.fact
    return "", ""


def _conda(said: tuple[Symptom, ...], python: Python) -> tuple[str, str]:
    """Return the fact that conda was asked for CUDA or sees the driver, and its description."""
    seen = bool(of_kind(said, "conda-driver-seen"))
    fact = _first(said, "conda-cuda-asked", "conda-driver-seen")
    if not fact:
        fact = next((found[0] for name in CUDA_PACKAGES if (found := python.package(name)) is not None), "")
    return fact, "conda sees an NVIDIA driver" if seen else "CUDA was requested" if fact else ""
