"""Whether CuPy is there at all."""

from collections.abc import Iterator
from dataclasses import replace

from gpudoctor.conclusions.installed import Machine, cupy_installed, required
from gpudoctor.conclusions.messages import reported
from gpudoctor.model import (
    Cupy,
    CupyRuntime,
    Device,
    Driver,
    Finding,
    Project,
    Python,
    Remedy,
    Severity,
    Symptom,
    System,
)
from gpudoctor.registry import check, known
from gpudoctor.remedies import python_command


@check(family="cupy", explains=("cupy-unusable",))
def cupy_missing(
    cupy: Cupy | None = None,
    cupy_runtime: CupyRuntime | None = None,
    project: Project | None = None,
    python: Python | None = None,
    system: System | None = None,
    driver: Driver | None = None,
    devices: tuple[Device, ...] | None = None,
    symptoms: tuple[Symptom, ...] | None = None,
) -> Iterator[Finding]:
    """CuPy is not installed.

    Why: import cupy ends with "No module named 'cupy'", although the project's requirements name it.
    spaCy, which uses CuPy, says only "GPU is not accessible", most often because it finds none: the extra cuda11x
    or cuda12x was not asked for.
    Exception: where neither a requirement nor a program that failed names CuPy this is advice; without an NVIDIA GPU
    there is nothing to install.
    Reference: https://docs.cupy.dev/en/stable/install.html
    """
    machine = Machine(python=python, system=system, driver=driver, devices=devices)
    refused = reported(symptoms, "cupy-not-accessible")
    other_cause = reported(symptoms, "memory-short-*", "cuda-*", "nvml-*", "torch-no-driver")
    if refused and not other_cause and not (cupy and cupy.distributions) and machine.gpu() != "":
        yield _not_accessible(refused[0][0], cupy, machine)
        return
    if known(cupy_installed(cupy, cupy_runtime), "cupy.distributions"):
        return
    requirement = required(project, "cupy*", "amd-cupy")
    useful = requirement or machine.gpu() != ""
    asks = f", and {requirement.source} asks for {requirement.name}{requirement.specifier}" if requirement else ""
    yield Finding(
        severity=Severity.ERROR if requirement or reported(symptoms, "cupy-not-installed*") else Severity.INFO,
        summary=f"CuPy is not installed{asks}"
        if useful
        else "CuPy is not installed, and there is no NVIDIA GPU for it",
        subject="cupy",
        facts=(
            "cupy.distributions" if cupy is not None and cupy.distributions == () else "cupy_runtime.import_error",
            *(("project.requirements",) if requirement else ()),
        ),
        remedies=(machine.install_cupy(cupy),) if useful else (),
    )


def _not_accessible(fact: str, cupy: Cupy | None, machine: Machine) -> Finding:
    """Return the finding where a library that uses CuPy finds no GPU with it, and nothing shows that CuPy is there."""
    return Finding(
        severity=Severity.ERROR,
        summary="spaCy finds no CuPy that can use the GPU, and the report names none",
        subject="cupy",
        facts=(fact,),
        remedies=(
            replace(
                machine.install_cupy(cupy),
                reference="https://spacy.io/usage#gpu",
            ),
            Remedy(
                summary="See what CuPy itself says: No module named 'cupy' where it is not installed, else why it "
                "cannot be loaded or finds no device",
                commands=(
                    python_command(machine.python, "-c", "import cupy; cupy.show_config(); print(cupy.arange(3))"),
                ),
            ),
        ),
    )
