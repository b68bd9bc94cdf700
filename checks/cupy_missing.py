"""Whether CuPy is there at all."""

from collections.abc import Iterator

from gpudoctor.model import Cupy, CupyStatus, Finding, Fix, Gpu, Project, Severity
from gpudoctor.registry import check, known
from gpudoctor.symptoms import Symptoms, of_kind


@check(family="cupy", explains=("cupy-unusable",))
def cupy_missing(
    gpu: Gpu, cupy_status: CupyStatus, cupy: Cupy = Cupy(), project: Project = Project(), symptoms: Symptoms = None
) -> Iterator[Finding]:
    """CuPy is not installed.

    Why: import cupy fails with "No module named 'cupy'", although the project's requirements list it. spaCy uses CuPy
    and says only "GPU is not accessible", usually because it was installed without the extra cuda11x or cuda12x.
    Exception: if neither a requirement nor a failed program names CuPy, this is advice. Without an NVIDIA GPU it
    passes.
    Reference: https://docs.cupy.dev/en/stable/install.html
    """
    none_listed = cupy.distributions == ()
    refused = of_kind(symptoms, "cupy-not-accessible")
    other_cause = of_kind(symptoms, "@memory-short", "memory-short-*", "cuda-*", "nvml-*", "torch-no-driver")
    if refused and not other_cause and not cupy.distributions and gpu.name != "":
        summary = "spaCy finds no CuPy that can use the GPU, and the report names none"
        yield Finding.error("cupy", summary, (refused[0].fact,), Fix("install-cupy-for-spacy"))
        return
    if known(cupy_status.installed, "cupy.distributions"):
        return
    requirement = project.always_requires("cupy*", "amd-cupy")
    asks = f", and {requirement.source} asks for {requirement.name}{requirement.specifier}" if requirement else ""
    useless = gpu.name == "" and not requirement
    severity = Severity.ERROR if requirement or of_kind(symptoms, "cupy-not-installed*") else Severity.INFO
    summary = "CuPy is not installed" + (", and there is no NVIDIA GPU for it" if useless else asks)
    facts = (
        "cupy.distributions" if none_listed else "cupy_runtime.import_error",
        "project.requirements" if requirement else "",
    )
    yield Finding.of(severity, "cupy", summary, facts, *(() if useless else (Fix("install-cupy"),)))
