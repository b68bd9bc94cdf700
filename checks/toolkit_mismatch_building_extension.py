"""The CUDA toolkit that compiles extensions against PyTorch's CUDA version."""

from collections.abc import Iterator

from gpudoctor.data import first_toolkit, last_toolkit
from gpudoctor.model import (
    ComputeCapability,
    CudaVersion,
    Extensions,
    Finding,
    Fix,
    Pytorch,
    Severity,
    Symptom,
    Toolkit,
)
from gpudoctor.registry import check, known, skip_unless
from gpudoctor.symptoms import Symptoms, of_kind

# What each kind of message says; those that say most stand first.
SUMMARIES = {
    "toolkit-other-than-torch": "nvcc is of CUDA {nvcc}, PyTorch was built with CUDA {built_with}",
    "toolkit-other-than-torch-deepspeed": "nvcc is of CUDA {nvcc}, PyTorch was built with CUDA {built_with}",
    "toolkit-other-than-torch-apex": "nvcc is of another CUDA than PyTorch was built with",
    "toolkit-lacks-architecture": "nvcc does not compile for {architecture}, which the build asks for",
    "toolkit-older-than-needed": "{package} needs a CUDA toolkit of {needed} or newer",
    "toolkit-too-old-for-package": "{package} needs a CUDA toolkit of {needed} or newer",
    "toolkit-lacks-option": "nvcc does not know the option {option}: it is older than the build asks for",
    "toolkit-ptxas-version": "ptxas does not know PTX {ptx}: it is older than the compiler that wrote it",
    "toolkit-no-device-to-build-for": "The build finds no GPU and is not told for which architectures to compile",
    "toolkit-no-architectures": "The build does not know for which architectures to compile",
    "toolkit-not-in-visual-studio": "Visual Studio has no build customization of the CUDA toolkit",
    "toolkit-cmake-architecture": "CMake does not know for which architectures to compile: no nvcc, or one that fails",
    "toolkit-home-unset": "The build finds no CUDA toolkit: CUDA_HOME is not set and no nvcc is on PATH",
    "toolkit-nvcc-missing": "The build finds no nvcc",
    "toolkit-not-found-by-cmake": "CMake finds no CUDA toolkit",
    "toolkit-nvvm-missing": "Numba finds no libNVVM, which a CUDA toolkit holds",
    "toolkit-header-missing": "The compiler finds no {header}, a header of the CUDA toolkit",
    "toolkit-library-not-linked": "The linker finds no lib{name}, a library of the CUDA toolkit",
    "toolkit-libdevice-missing": "The framework finds no libdevice, which a CUDA toolkit holds",
}
WITHOUT_DEVICE = ("toolkit-no-device-to-build-for", "toolkit-no-architectures")
ABSENT = (
    *("toolkit-home-unset", "toolkit-nvcc-missing", "toolkit-not-found-by-cmake", "toolkit-nvvm-missing"),
    *("toolkit-cmake-architecture", "toolkit-header-missing", "toolkit-libdevice-missing"),
    "toolkit-library-not-linked",
)
FIRST_FIXES = {
    "toolkit-not-in-visual-studio": Fix("integrate-in-visual-studio"),
    "toolkit-cmake-architecture": Fix("name-to-cmake"),
    "toolkit-libdevice-missing": Fix("name-libdevice"),
}
CUT = "nvcc is of another CUDA than PyTorch was built with"  # if the report ends before the versions


@check(family="cuda")
def toolkit_mismatch_building_extension(
    pytorch: Pytorch, extensions: Extensions, toolkit: Toolkit = Toolkit(), symptoms: Symptoms = None
) -> Iterator[Finding]:
    """The CUDA toolkit that would compile extensions is missing, or of another major version than PyTorch's CUDA.

    Why: torch.utils.cpp_extension refuses to compile: "The detected CUDA version mismatches the version that was used
    to compile PyTorch". It takes the toolkit of CUDA_HOME, else that of nvcc on PATH; the CUDA version that nvidia-smi
    shows is the driver's. A toolkit that is older than the GPU or the package does not compile for it.
    Exception: PyTorch itself needs no toolkit, so none at all passes, and one that differs is advice unless the project
    requires a package that is still to be compiled. Minor versions may differ.
    Reference: https://docs.pytorch.org/docs/stable/cpp_extension.html
    """
    said = of_kind(symptoms, *SUMMARIES)
    if said:
        first = min(said, key=lambda symptom: list(SUMMARIES).index(symptom.kind))
        yield _failed_build(first, pytorch, toolkit.nvcc_version)
        return
    skip_unless(pytorch.build_read in (None, "cuda"), "PyTorch is not built for CUDA")
    skip_unless(toolkit.nvcc_path != "", "no nvcc is found, and none is needed to run PyTorch")
    nvcc = known(toolkit.nvcc_version, "toolkit.nvcc_version")
    built_with = known(pytorch.cuda_version, "torch.cuda_version")
    if nvcc.major == built_with.major:
        return
    extension = extensions.to_build
    needs = f", and {extension.source} asks for {extension.name}" if extension else ""
    severity = Severity.WARNING if extension else Severity.INFO
    summary = f"nvcc is of CUDA {nvcc}, PyTorch was built with CUDA {built_with}{needs}"
    facts = ("toolkit.nvcc_version", *pytorch.paths("cuda_version"), "project.requirements" if extension else "")
    yield Finding.of(severity, "nvcc", summary, facts, Fix("use-toolkit", cuda=built_with))


def _failed_build(symptom: Symptom, pytorch: Pytorch, nvcc: CudaVersion | None) -> Finding:
    text = SUMMARIES[symptom.kind]
    if symptom.kind.startswith("toolkit-other") and "built_with" not in symptom.names:
        text = CUT
    if symptom.kind.startswith("toolkit-lacks") or "needed" in symptom.names:
        text += f", and nvcc is of CUDA {nvcc}" if nvcc else ""
    summary = text.format(**{"ptx": "", **symptom.names})
    facts = (symptom.fact, "toolkit.nvcc_version" if nvcc else "")
    return Finding.error("nvcc", summary, facts, *_fixes(symptom, nvcc, pytorch), details=dict(symptom.names))


def _fixes(symptom: Symptom, nvcc: CudaVersion | None, pytorch: Pytorch) -> Iterator[Fix]:
    kind, wanted = symptom.kind, pytorch.cuda_version
    if kind in WITHOUT_DEVICE:
        yield Fix("name-architectures")
        return
    if kind in FIRST_FIXES:
        yield FIRST_FIXES[kind]
    architecture = symptom.names.get("architecture")
    if architecture is not None:
        capability = ComputeCapability.parse(architecture)
        wanted = last_toolkit(capability) or first_toolkit(capability) or wanted
        yield Fix("other-architectures", architecture=architecture, nvcc=nvcc)
    elif "needed" in symptom.names:
        wanted = max(CudaVersion.parse(symptom.names["needed"]), wanted or CudaVersion(0, 0))
    if kind in ABSENT:
        yield Fix("name-toolkit")
    yield Fix("use-toolkit", cuda=wanted)
    if nvcc is not None and pytorch.cuda_version is not None and nvcc.major != pytorch.cuda_version.major:
        yield Fix("torch-for-toolkit", nvcc=nvcc)
    if kind.startswith("toolkit-other-than-torch"):
        yield Fix("build-against-installed-torch")
    if kind in ABSENT and symptom.library not in ("numba", "xla"):
        yield Fix("install-compiled-wheel")
