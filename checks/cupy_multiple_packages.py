"""How many CuPy distributions are installed."""

from collections.abc import Iterator

from gpudoctor.model import Cupy, CupyRuntime, Finding, Fix, Gpu, Severity
from gpudoctor.registry import check, known
from gpudoctor.symptoms import Symptoms, of_kind


@check(
    family="cupy",
    explains=(
        *("cupy-wrong-cuda-package", "cupy-unusable", "cupy-nvrtc-missing", "cupy-cuda-libs-missing"),
        "cupy-arch-unsupported",
    ),
)
def cupy_multiple_packages(
    gpu: Gpu, cupy: Cupy = Cupy(), cupy_runtime: CupyRuntime = CupyRuntime(), symptoms: Symptoms = None
) -> Iterator[Finding]:
    """Several CuPy packages are installed at once.

    Why: cupy, cupy-cuda12x, cupy-cuda13x and the others install the same files. The last one overwrote the others, and
    removing one of them breaks the rest. CuPy warns about this on import.
    Exception: if CuPy works, this is a warning.
    Reference: https://docs.cupy.dev/en/stable/install.html#using-pip
    """
    listed = cupy.distributions
    error = cupy_runtime.first_error
    warned = of_kind(symptoms, "cupy-multiple-packages")[:1]
    if not warned and len(listed or ()) < 2:
        said = tuple(_said(symptoms, fails=error is not None))
        yield from said
        if not said:
            known(listed, "cupy.distributions")
        return
    names = [f"{package.name} {package.version}" for package in listed or ()]
    several = len({package.name for package in listed or ()}) > 1
    if not several and not warned:
        return
    if not several:
        names = sorted(set(warned[0].names.get("packages", "").lower().replace(",", " ").split()))
    fails = gpu.name != "" and error is not None
    severity = Severity.ERROR if fails else Severity.WARNING
    summary = f"{' and '.join(names) if len(names) > 1 else 'Several CuPy packages'} are installed at once"
    facts = (
        "cupy.distributions" if len(listed or ()) > 1 else "",
        *(symptom.fact for symptom in warned),
        error if fails and error else "",
    )
    yield Finding.of(severity, "cupy", summary, facts, Fix("install-cupy", named=() if several else tuple(names)))


def _said(symptoms: Symptoms, *, fails: bool) -> Iterator[Finding]:
    """Yield what a report says of several distributions. fails: whether it shows an error of CuPy."""
    for symptom in of_kind(symptoms, "cupy-multiple-reported")[:1]:
        names = sorted({name.lower() for name in symptom.names.values()})
        severity = Severity.ERROR if fails else Severity.WARNING
        summary = f'The report says that several CuPy packages are installed: "{symptom.text}"'
        yield Finding.of(severity, "cupy", summary, (symptom.fact,), Fix("install-cupy", named=tuple(names)))
        return
    # Those that the report mentions, whether they are installed or not.
    names = sorted({symptom.text.lower() for symptom in of_kind(symptoms, "cupy-distribution-named")})
    for symptom in of_kind(symptoms, "cupy-attribute-missing")[:1] if len(names) > 1 else ():
        summary = f"CuPy lacks a part of itself, and {' and '.join(names)} install the same files: {symptom.text}"
        yield Finding.error("cupy", summary, (symptom.fact,), Fix("install-cupy", named=tuple(names)))
