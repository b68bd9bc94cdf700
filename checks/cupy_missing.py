"""Whether CuPy is there at all."""

from collections.abc import Iterator

from gpudoctor.model import Cupy, CupyRuntime, Device, Driver, Finding, Message, Project, Python, Severity, System
from gpudoctor.reasoning.installed import Machine, cupy_installed, required
from gpudoctor.reasoning.messages import reported
from gpudoctor.registry import check, known


@check(family="cupy")
def cupy_missing(
    cupy: Cupy | None = None,
    cupy_runtime: CupyRuntime | None = None,
    project: Project | None = None,
    python: Python | None = None,
    system: System | None = None,
    driver: Driver | None = None,
    devices: tuple[Device, ...] | None = None,
    messages: tuple[Message, ...] | None = None,
) -> Iterator[Finding]:
    """CuPy is not installed.

    Why: import cupy ends with "No module named 'cupy'", although the project's requirements name it.
    Exception: where neither a requirement nor a program that failed names CuPy this is advice; without an NVIDIA GPU
    there is nothing to install.
    Reference: https://docs.cupy.dev/en/stable/install.html
    """
    if known(cupy_installed(cupy, cupy_runtime), "cupy.distributions"):
        return
    machine = Machine(python=python, system=system, driver=driver, devices=devices)
    requirement = required(project, "cupy*", "amd-cupy")
    useful = requirement or machine.gpu() != ""
    asks = f", and {requirement.source} asks for {requirement.name}{requirement.specifier}" if requirement else ""
    yield Finding(
        severity=Severity.ERROR if requirement or reported(messages, "cupy-not-installed*") else Severity.INFO,
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
