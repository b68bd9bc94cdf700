"""How many CuPy distributions are installed."""

import re
from collections.abc import Iterator

from gpudoctor.conclusions.cupy_errors import cupy_errors, with_distributions
from gpudoctor.conclusions.installed import Machine
from gpudoctor.conclusions.messages import reported
from gpudoctor.model import Cupy, CupyRuntime, Device, Driver, Finding, Python, Severity, Symptom, System
from gpudoctor.registry import check, known

WARNING = "multiple CuPy packages are installed"
_WHOLE_NAMES = r"(?<![\w-])cupy(?:-cuda\d{2,3}x?)?(?![\w-])"
_NAMES = r"(?<![\w-])(?:amd-)?cupy(?:-(?:cuda|rocm)[\w-]{1,20})?(?![\w-])"


@check(
    family="cupy",
    explains=(
        "cupy-wrong-cuda-package",
        "cupy-unusable",
        "cupy-nvrtc-missing",
        "cupy-cuda-libs-missing",
        "cupy-arch-unsupported",
    ),
)
def cupy_multiple_packages(
    cupy: Cupy | None = None,
    cupy_runtime: CupyRuntime | None = None,
    python: Python | None = None,
    system: System | None = None,
    driver: Driver | None = None,
    devices: tuple[Device, ...] | None = None,
    symptoms: tuple[Symptom, ...] | None = None,
) -> Iterator[Finding]:
    """Several CuPy distributions are installed at once.

    Why: cupy, cupy-cuda12x, cupy-cuda13x and the others install the same files; the last one overwrote the rest, and
    removing one of them leaves a broken package behind. CuPy warns of it on import.
    Exception: as long as CuPy works this is a warning.
    Reference: https://docs.cupy.dev/en/stable/install.html#using-pip
    """
    machine = Machine(python=python, system=system, driver=driver, devices=devices)
    told = reported(symptoms, "cupy-multiple-told")
    warnings = (cupy_runtime.warnings if cupy_runtime is not None else None) or ()
    warned = next((number for number, text in enumerate(warnings) if WARNING in text), None)
    installed = cupy.distributions if cupy is not None else None
    if told and warned is None and len(installed or ()) < 2:
        yield _as_told(*told[0], cupy, machine, fails=next(cupy_errors(cupy_runtime), None) is not None)
        return
    named = _named_in(symptoms)
    torn = reported(symptoms, "cupy-attribute-missing") if len(named) > 1 else ()
    if torn and warned is None and len(installed or ()) < 2:
        yield _as_torn(*torn[0], named, cupy, machine)
        return
    distributions = known(installed, "cupy.distributions") if warned is None else installed or ()
    names = sorted({package.name for package in distributions})
    if len(names) < 2 and warned is None:
        return
    fails = machine.gpu() != "" and next(cupy_errors(cupy_runtime), None)
    if len(names) < 2 and warned is not None:
        names = _named(warnings[warned])
        cupy = with_distributions(cupy, tuple(names))
        listed = " and ".join(names)
    else:
        listed = " and ".join(f"{package.name} {package.version}" for package in distributions)
    yield Finding(
        severity=Severity.ERROR if fails else Severity.WARNING,
        summary=f"{listed} are installed at once" if len(names) > 1 else "Several CuPy packages are installed at once",
        subject="cupy",
        facts=(
            *(("cupy.distributions",) if len(distributions) > 1 else ()),
            *((f"cupy_runtime.warnings[{warned}]",) if warned is not None else ()),
            *((fails[0],) if fails else ()),
        ),
        remedies=(machine.install_cupy(cupy),),
    )


def _named_in(symptoms: tuple[Symptom, ...] | None) -> tuple[str, ...]:
    """Return the distributions that the report speaks of, whether they are installed or not."""
    return tuple(sorted({message.text.lower() for _, message in reported(symptoms, "cupy-distribution-named")}))


def _as_torn(fact: str, message: Symptom, names: tuple[str, ...], cupy: Cupy | None, machine: Machine) -> Finding:
    """Return the finding where CuPy lacks a part of itself: one of two distributions was removed or overwritten."""
    return Finding(
        severity=Severity.ERROR,
        summary=f"CuPy lacks a part of itself, and {' and '.join(names)} install the same files: {message.text}",
        subject="cupy",
        facts=(fact,),
        remedies=(machine.install_cupy(with_distributions(cupy, names)),),
    )


def _as_told(fact: str, message: Symptom, cupy: Cupy | None, machine: Machine, *, fails: bool) -> Finding:
    """Return the finding where somebody says that several are installed."""
    names = tuple(sorted(set(re.findall(_WHOLE_NAMES, message.text.lower()))))
    return Finding(
        severity=Severity.ERROR if fails else Severity.WARNING,
        summary=f'The report says that several CuPy packages are installed: "{message.text}"',
        subject="cupy",
        facts=(fact,),
        remedies=(machine.install_cupy(with_distributions(cupy, names)),),
    )


def _named(warning: str) -> list[str]:
    """Return the distributions that CuPy's warning lists."""
    _, _, rest = warning.partition(WARNING)
    return sorted({match.lower() for match in re.findall(_NAMES, rest)})
