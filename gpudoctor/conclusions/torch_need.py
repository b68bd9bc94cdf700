"""Whether PyTorch is needed."""

from gpudoctor.model import Cupy, Gpu, Project, Python, Requirement, Severity, TorchNeed
from gpudoctor.symptoms import Symptoms, of_kind, pasted

# Libraries other than PyTorch and CuPy that use a GPU.
OTHER_FRAMEWORKS = ("tensorflow*", "tf-nightly*", "jax", "jaxlib", "onnxruntime*", "numba", "cudf*", "cuml*")


def torch_need(project: Project, gpu: Gpu, cupy: Cupy, python: Python, symptoms: Symptoms) -> TorchNeed:
    """Return what needs PyTorch: the project, a program that imports it, or a GPU that nothing else uses."""
    missing = of_kind(pasted(symptoms), "torch-module-missing", "torch-said-missing")
    # A package build also imports it, but in an isolated environment.
    imported = next((found.fact for found in missing if not {"build", "after"} & set(found.names)), "")
    requirement = project.always_requires("torch", "pytorch", "torchvision", "torchaudio") if project else None
    return TorchNeed(
        severity=_severity(requirement, gpu, cupy, python),
        requirement=requirement,
        of_torch=project.always_requires("torch") if project else None,
        imported=imported,
    )


def _severity(requirement: Requirement | None, gpu: Gpu, cupy: Cupy, python: Python) -> Severity:
    if requirement is not None:
        return Severity.ERROR
    others = python.matching(*OTHER_FRAMEWORKS)
    unused = gpu.name and cupy.distributions == () and cupy.version is None and not others
    return Severity.WARNING if unused else Severity.INFO
