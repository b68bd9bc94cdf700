"""NVRTC, the runtime compiler, and GPUs that it does not support."""

import re

from gpudoctor.data.capabilities import architectures_of_major, toolkit_architectures
from gpudoctor.data.gpu_names import capability_of
from gpudoctor.model import ComputeCapability, CudaVersion, Cupy, CupyRuntime, KnownGpu, Nvrtc, Python, Toolkit
from gpudoctor.model.cuda_conclusions import Compiler
from gpudoctor.symptoms import Symptoms, of_kind


def nvrtc(*, cupy: Cupy, cupy_runtime: CupyRuntime, toolkit: Toolkit, python: Python, symptoms: Symptoms) -> Nvrtc:
    """Return NVRTC's error, the GPU, whether CuPy finds the library, and the supported architectures."""
    on_disk, unknown = _on_disk(cupy, toolkit, python)
    # CuPy chooses its own NVRTC; otherwise PyTorch's is the usual one.
    refused = () if of_kind(symptoms, "cupy-named") else of_kind(symptoms, "nvrtc-architecture-refused")
    return Nvrtc(
        refused=refused[0] if refused else None,
        named_gpus=named_gpus(symptoms),
        of_cupy=_of_cupy(cupy, cupy_runtime, python),
        on_disk=on_disk,
        unknown=unknown,
    )


def _on_disk(cupy: Cupy, toolkit: Toolkit, python: Python) -> tuple[bool | None, str]:
    """Return whether a wheel, a toolkit or the loader has NVRTC, or the fact that is missing to decide."""
    if cupy.nvrtc_files is None:
        return None, "cupy.nvrtc_files"
    if cupy.nvrtc_files or toolkit.toolkits:
        return True, ""
    if toolkit.toolkits is None or toolkit.system_libraries is None:
        return None, "toolkit.toolkits" if toolkit.toolkits is None else "toolkit.system_libraries"
    by_conda = any(package.installer == "conda" and "nvrtc" in package.name for package in python.packages or ())
    libraries = (*toolkit.system_libraries, *(toolkit.library_path_libraries or ()))
    if by_conda or any("nvrtc" in library.soname for library in libraries):
        return True, ""
    return (None, "what conda's packages hold") if python.environment == "conda" else (False, "")


def named_gpus(symptoms: Symptoms) -> tuple[KnownGpu, ...]:
    """Return the GPU that the report names with the error, else the one with the requested capability."""
    for symptom in of_kind(symptoms, "nvrtc-architecture-device*"):
        name = symptom.names.get("device")
        capability = capability_of(name)
        if name and capability is not None:
            return (KnownGpu(name=name, capability=capability, fact=symptom.fact),)
    for symptom in of_kind(symptoms, "nvrtc-architecture-option"):
        capability = ComputeCapability.parse(symptom.names["capability"])
        return (KnownGpu(name="the GPU", capability=capability, fact=symptom.fact),)
    named = {symptom.text: symptom.fact for symptom in of_kind(symptoms, "nvidia-gpu-named")}
    # With several GPUs in a report, the failing one is unknown.
    if len(named) != 1:
        return ()
    ((name, fact),) = named.items()
    capability = capability_of(name)
    return (KnownGpu(name=name, capability=capability, fact=fact),) if capability is not None else ()


def _of_cupy(cupy: Cupy, runtime: CupyRuntime, python: Python) -> Compiler | None:
    """Return the supported architectures: from NVRTC, else by its version, else common to its major version."""
    if runtime.nvrtc_architectures:
        version = f" {runtime.nvrtc_version}" if runtime.nvrtc_version else ""
        fact = "cupy_runtime.nvrtc_architectures"
        return Compiler(architectures=runtime.nvrtc_architectures, name=f"NVRTC{version}", fact=fact)
    major = cupy.cuda_major
    versions: tuple[tuple[CudaVersion | None, str], ...] = (
        (runtime.nvrtc_version, "cupy_runtime.nvrtc_version"),
        (runtime.runtime_cuda_version, "cupy_runtime.runtime_cuda_version"),
        _wheel_version(major, python),
    )
    for cuda, fact in versions:
        listed = toolkit_architectures(cuda) if cuda is not None else None
        if listed is not None:
            return Compiler(architectures=listed, name=f"NVRTC {cuda}", fact=fact)
    return _of_major(major) if major is not None else None


def _wheel_version(major: int | None, python: Python) -> tuple[CudaVersion | None, str]:
    """Return the version of NVIDIA's NVRTC wheel for CuPy's CUDA major version, and its fact."""
    for number, package in enumerate(python.packages or ()):
        if re.fullmatch(r"nvidia-cuda-nvrtc(-cu\d+)?", package.name) and package.version.release[:1] == (major,):
            return CudaVersion.parse(package.version.minor_release), f"python.packages[{number}].version"
    return None, ""


def _of_major(major: int) -> Compiler | None:
    """Return the architectures that any toolkit of a major version compiles for."""
    architectures = architectures_of_major(major)
    if not architectures:
        return None
    return Compiler(architectures=architectures, name=f"NVRTC of CUDA {major}", fact="cupy.cuda_major")
