"""The CUDA toolkit that compiles extensions against PyTorch's CUDA version."""

from collections.abc import Iterator
from dataclasses import replace

from gpudoctor.data.capabilities import first_toolkit, last_toolkit
from gpudoctor.model import ComputeCapability, CudaVersion, Finding, Fix, Pytorch, Severity, Symptom, Toolkit
from gpudoctor.model.torch_conclusions import Extensions
from gpudoctor.registry import check, known, skip_unless
from gpudoctor.symptoms import Symptoms, most_telling, of_kind, pasted
from gpudoctor.symptoms.answers import answers

ID = "toolkit-mismatch-building-extension"


@check(family="cuda")
def toolkit_mismatch_building_extension(
    pytorch: Pytorch, extensions: Extensions, toolkit: Toolkit = Toolkit(), symptoms: Symptoms = None
) -> Iterator[Finding]:
    """The CUDA toolkit for compiling extensions is missing, or has a different major version than PyTorch's CUDA.

    Why: torch.utils.cpp_extension refuses to compile: "The detected CUDA version mismatches the version that was used
    to compile PyTorch". It uses the toolkit that CUDA_HOME names, otherwise the one with nvcc on PATH. The CUDA version
    that nvidia-smi shows is the driver's. A toolkit that is older than the GPU or the package does not compile for it.
    Exception: PyTorch itself needs no toolkit, so a missing one passes. A different one is advice, unless the project
    requires a package that still has to be compiled. Minor versions may differ.
    Reference: https://docs.pytorch.org/docs/stable/cpp_extension.html
    """
    said = most_telling(symptoms, "toolkit-mismatch")
    if said is not None:
        yield _failed_build(said, pytorch, toolkit.nvcc_version)
        return
    skip_unless(pytorch.build_read in (None, "cuda"), "PyTorch is not built for CUDA")
    skip_unless(toolkit.nvcc_path != "", "no nvcc is found, and none is needed to run PyTorch")
    nvcc = known(toolkit.nvcc_version, "toolkit.nvcc_version")
    built_with = known(pytorch.cuda_version, "torch.cuda_version")
    if nvcc.major == built_with.major:
        return
    extension, named = extensions.to_build, of_kind(pasted(symptoms), "nvcc-failed", "extension-named")[:1]
    needs = f", and {extension.source} asks for {extension.name}" if extension else ""
    severity = Severity.WARNING if extension or named else Severity.INFO
    summary = f"nvcc is from CUDA {nvcc}, but PyTorch was built with CUDA {built_with}{needs}"
    required = "project.requirements" if extension else ""
    facts = ("toolkit.nvcc_version", *pytorch.paths("cuda_version"), required, *(symptom.fact for symptom in named))
    yield Finding.of(severity, "nvcc", summary, facts, Fix("use-toolkit", cuda=built_with))


def _failed_build(symptom: Symptom, pytorch: Pytorch, nvcc: CudaVersion | None) -> Finding:
    kind, names = symptom.kind, dict(symptom.names)
    if kind.startswith("toolkit-other") and "built_with" not in names:  # the report ends before the versions
        kind = "toolkit-other-than-torch-apex"
    here = {"ours": str(nvcc)} if nvcc else {}
    (found,) = answers((replace(symptom, kind=kind, names={**names, **here}),), ID)
    fixes = tuple(fix for named in found.fixes for fix in _for_versions(named, symptom, nvcc, pytorch.cuda_version))
    return replace(found, facts=(symptom.fact, "toolkit.nvcc_version"), fixes=fixes, details=names)


def _for_versions(
    fix: Fix, symptom: Symptom, nvcc: CudaVersion | None, built_with: CudaVersion | None
) -> Iterator[Fix]:
    """Yield the fix with the versions that it needs to know."""
    architecture, needed = symptom.names.get("architecture"), symptom.names.get("needed")
    if fix.name == "other-architectures":
        yield Fix(fix.name, architecture=architecture, nvcc=nvcc)
    elif fix.name == "use-toolkit":
        wanted = built_with
        if architecture is not None:
            capability = ComputeCapability.parse(architecture)
            wanted = last_toolkit(capability) or first_toolkit(capability) or wanted
        elif needed is not None:
            wanted = max(CudaVersion.parse(needed), wanted or CudaVersion(0, 0))
        yield Fix(fix.name, cuda=wanted)
        if nvcc is not None and built_with is not None and nvcc.major != built_with.major:
            yield Fix("torch-for-toolkit", nvcc=nvcc)
    else:
        yield fix
