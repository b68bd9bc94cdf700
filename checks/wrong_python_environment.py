"""The environment that runs against the one that is activated."""

from collections.abc import Iterator

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
    System,
    Torch,
    TorchRuntime,
)
from gpudoctor.reasoning.installed import (
    Machine,
    cupy_installed,
    required,
    severity_without_torch,
    torch_fact,
    whole_torch,
)
from gpudoctor.registry import applies, check, known
from gpudoctor.remedies.commands import is_windows, quote


@check(family="python", explains=("torch-not-installed", "cupy-missing", "python-version-no-wheel"))
def wrong_python_environment(
    python: Python,
    torch: Torch | None = None,
    torch_runtime: TorchRuntime | None = None,
    cupy: Cupy | None = None,
    cupy_runtime: CupyRuntime | None = None,
    project: Project | None = None,
    system: System | None = None,
    driver: Driver | None = None,
    devices: tuple[Device, ...] | None = None,
) -> Iterator[Finding]:
    """The program runs in another Python environment than the activated one, and PyTorch is not in it.

    Why: an alias, a notebook's kernel, a service or a tool of its own environment starts another interpreter; packages
    installed after "activate" are not there.
    Exception: where the environment that runs has what is needed, it may be another one. Where neither the project nor
    a GPU asks for PyTorch this is advice.
    Reference: https://docs.python.org/3/library/venv.html#how-venvs-work
    """
    active = known(python.active_environment, "python.active_environment")
    applies(active, "no environment is activated")
    prefix = known(python.prefix, "python.prefix")
    windows = is_windows(python, system)
    if _same(active, prefix, windows):
        return
    has_torch = whole_torch(torch, torch_runtime).installed
    has_cupy = cupy_installed(cupy, cupy_runtime)
    severity = Severity.ERROR
    if required(project, "cupy*") and has_cupy is False:
        missing, fact = "CuPy", "cupy.distributions" if cupy is not None else "cupy_runtime.import_error"
    elif known(has_torch, "torch.installed") or (has_cupy and not required(project, "torch")):
        return
    else:
        missing, fact = "PyTorch", torch_fact("installed", torch, torch_runtime)
        gpu = Machine(python=python, system=system, driver=driver, devices=devices).gpu()
        if severity_without_torch(project, gpu, cupy, python) is Severity.INFO:
            severity = Severity.INFO
    yield Finding(
        severity=severity,
        summary=f"The environment {active} is activated, but the Python that runs is that of {prefix}, "
        f"which has no {missing}",
        subject=f"Python {python.version}" if python.version else "Python",
        facts=("python.active_environment", "python.prefix", fact),
        remedies=(_remedy(active, missing, windows),),
    )


def _same(one: str, other: str, windows: bool) -> bool:
    if windows:
        one, other = one.replace("\\", "/").lower(), other.replace("\\", "/").lower()
    return one.rstrip("/") == other.rstrip("/")


def _remedy(active: str, missing: str, windows: bool) -> Remedy:
    conda = "conda" in active.lower() or "mambaforge" in active.lower() or "miniforge" in active.lower()
    if windows:
        path = f"{active}\\python.exe" if conda else f"{active}\\Scripts\\python.exe"
    else:
        path = f"{active}/bin/python"
    module = "torch" if missing == "PyTorch" else "cupy"
    interpreter = quote(path, windows)
    return Remedy(
        summary="Run the program with the activated environment's own interpreter, and diagnose that one; if it has "
        f"no {missing} either, install it there",
        commands=(
            f'{interpreter} -c "import {module}; print({module}.__version__)"',
            f"gpudoctor check --python {interpreter}",
        ),
    )
