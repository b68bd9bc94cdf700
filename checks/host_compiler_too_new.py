"""The host compiler against the CUDA toolkit."""

from collections.abc import Iterator

from gpudoctor.data.cuda_libraries import USUAL_GCC_LIMIT, newest_gcc
from gpudoctor.model import CudaVersion, Extensions, Finding, Fix, Severity, Symptom, Toolkit
from gpudoctor.registry import check, known, skip_unless
from gpudoctor.symptoms import Symptoms, first, of_kind

# nvcc of CUDA 11.5, the one of Ubuntu 22.04, takes gcc 11 and fails in its std_function.h.
# Source: https://github.com/NVIDIA/VisRTX/issues/71, https://github.com/NVlabs/instant-ngp/issues/1240
BEFORE_GCC_11 = 10
COMPILERS = {
    "compiler-clang-too-new": "clang",
    "compiler-clang-unsupported": "clang",
    "compiler-msvc-too-new": "cl",
    "compiler-msvc-too-new-stl": "cl",
}


@check(family="cuda")
def host_compiler_too_new(
    extensions: Extensions, toolkit: Toolkit = Toolkit(), symptoms: Symptoms = None
) -> Iterator[Finding]:
    """The host compiler is newer than this nvcc supports.

    Why: nvcc uses gcc for the host code and fails with "unsupported GNU version! gcc versions later than N are not
    supported", "unsupported Microsoft Visual Studio version", or errors in the compiler's headers.
    Exception: without nvcc nothing is compiled. If the project requires no package that still has to be compiled, this
    is advice. The limit is from the toolkit's own header; compilers other than gcc are not compared.
    Reference: https://docs.nvidia.com/cuda/cuda-installation-guide-linux/#host-compiler-support-policy
    """
    said = first(of_kind(symptoms, "compiler-*"))
    if said is not None:
        yield _failed_build(said, toolkit)
        return
    skip_unless(toolkit.nvcc_path != "", "no nvcc is found, and none is needed to run PyTorch or CuPy")
    skip_unless(known(toolkit.host_compiler, "toolkit.host_compiler") == "gcc", "the host compiler is not gcc")
    version = known(toolkit.host_compiler_version, "toolkit.host_compiler_version")
    newest = known(toolkit.host_compiler_max, "toolkit.host_compiler_max")
    if not version or version[0] <= newest:
        return
    extension = extensions.to_build
    needs = f", and {extension.source} asks for {extension.name}" if extension else ""
    severity = Severity.WARNING if extension else Severity.INFO
    summary = f"gcc is {'.'.join(map(str, version))}, but {_nvcc(toolkit)} supports {newest} at most{needs}"
    facts = (
        "toolkit.host_compiler_version",
        "toolkit.host_compiler_max",
        "toolkit.nvcc_version",
        "project.requirements" if extension else "",
    )
    yield Finding.of(severity, "gcc", summary, facts, Fix("install-gcc", newest=newest))


def _nvcc(toolkit: Toolkit) -> str:
    return f"nvcc of CUDA {toolkit.nvcc_version}" if toolkit.nvcc_version else "nvcc"


def _failed_build(symptom: Symptom, toolkit: Toolkit) -> Finding:
    compiler = COMPILERS.get(symptom.kind, "gcc")
    describe = {"cl": _visual_studio, "clang": _clang, "gcc": _gcc}[compiler]
    summary, fixes = describe(symptom, toolkit)
    return Finding.error(compiler, summary, (symptom.fact, "toolkit.nvcc_version"), *fixes, details=dict(symptom.names))


def _visual_studio(symptom: Symptom, toolkit: Toolkit) -> tuple[str, tuple[Fix, ...]]:
    needed, versions = symptom.names.get("needed"), symptom.names.get("versions")
    accepted = f"nvcc supports {versions}" if versions else "MSVC 14.39 or older of Visual Studio 2022"
    older = Fix("older-visual-studio", versions=accepted)
    summary = f"Visual Studio is newer than {_nvcc(toolkit)} supports: {symptom.text}"
    if needed:
        return summary, (Fix("install-toolkit-for-visual-studio", needed=needed), older)
    return summary, (older, Fix("allow-unsupported-compiler"))


def _clang(symptom: Symptom, toolkit: Toolkit) -> tuple[str, tuple[Fix, ...]]:
    nvcc, limit = _nvcc(toolkit), int(symptom.names.get("limit", 0))
    older = f"older than {limit}, as {nvcc} needs it to be" if limit else f"one that {nvcc} supports"
    gcc = Fix("install-gcc", newest=newest_gcc(toolkit.nvcc_version) or USUAL_GCC_LIMIT)
    fixes = (Fix("use-clang", major=limit - 1) if limit else gcc, Fix("newer-toolkit-for-compiler", gcc=""))
    return f"clang is not {older}: {symptom.text}", fixes


def _gcc(symptom: Symptom, toolkit: Toolkit) -> tuple[str, tuple[Fix, ...]]:
    newest = _newest(symptom, toolkit.nvcc_version)
    version = symptom.names.get("version") or ".".join(map(str, toolkit.host_compiler_version or ()))
    accepts = f"supports gcc {newest} at most" if newest else "does not support it"
    if symptom.kind == "compiler-headers-too-new":
        accepts = "cannot read its headers"
    summary = (
        f"gcc is {version}, but {_nvcc(toolkit)} {accepts}"
        if version
        else f"gcc is too new: {_nvcc(toolkit)} {accepts}"
    )
    return summary, (
        Fix("install-gcc", newest=newest or USUAL_GCC_LIMIT),
        Fix("newer-toolkit-for-compiler", gcc=version or (str(newest + 1) if newest else "")),
    )


def _newest(symptom: Symptom, nvcc: CudaVersion | None) -> int | None:
    """Return the newest major version of gcc that nvcc accepts: as the message says, else by the toolkit."""
    names = symptom.names
    if "newest" in names:
        return int(names["newest"])
    if "limit" in names:
        return int(names["limit"]) - (0 if names.get("inclusive") else 1)
    if "packs" in names:
        return int(names["version"]) - 1 if "version" in names else BEFORE_GCC_11
    return newest_gcc(nvcc)
