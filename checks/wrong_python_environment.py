"""The environment that runs against the one that is activated."""

from collections.abc import Iterator
from dataclasses import replace

from gpudoctor.conclusions.installed import (
    Machine,
    cupy_installed,
    package,
    required,
    severity_without_torch,
    torch_fact,
    whole_torch,
)
from gpudoctor.conclusions.messages import reported
from gpudoctor.conclusions.torch_requests import failed_request
from gpudoctor.model import (
    Contradiction,
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
    Torch,
    TorchRuntime,
)
from gpudoctor.model.record import record
from gpudoctor.registry import check, known, skip_unless
from gpudoctor.remedies.commands import is_windows, quote


@check(
    family="python",
    explains=("torch-not-installed", "torch-cuda-unavailable", "cupy-missing", "python-version-no-wheel"),
)
def wrong_python_environment(
    python: Python | None = None,
    torch: Torch | None = None,
    torch_runtime: TorchRuntime | None = None,
    cupy: Cupy | None = None,
    cupy_runtime: CupyRuntime | None = None,
    project: Project | None = None,
    system: System | None = None,
    driver: Driver | None = None,
    devices: tuple[Device, ...] | None = None,
    contradictions: tuple[Contradiction, ...] | None = None,
    symptoms: tuple[Symptom, ...] | None = None,
) -> Iterator[Finding]:
    """The program runs in another Python environment than the activated one, and PyTorch is not in it.

    Why: an alias, a notebook's kernel, a service or a tool of its own environment starts another interpreter; packages
    installed after "activate" are not there.
    Exception: where the environment that runs has what is needed, it may be another one. Where neither the project nor
    a GPU asks for PyTorch this is advice. A report that shows PyTorch or CuPy installed, and a program that finds none,
    tells of two environments whatever their names.
    Reference: https://docs.python.org/3/library/venv.html#how-venvs-work
    """
    elsewhere = _torch_elsewhere(python, torch, symptoms) or _cupy_elsewhere(cupy, symptoms)
    if elsewhere is not None:
        summary = f"{elsewhere.where[0].upper()}{elsewhere.where[1:]}, and the Python that ran the program has none"
        yield _two_environments(summary, (elsewhere.missing, elsewhere.shown), elsewhere.module, python, system)
        return
    outside = reported(symptoms, "python-other-environment-told")[:1]
    if outside:
        summary = f'A program runs under the Python of another environment: "{outside[0][1].text[:120]}"'
        found = _two_environments(summary, (outside[0][0],), "torch", python, system)
        yield replace(found, remedies=(_through_python(), *found.remedies))
        return
    told = _told(symptoms)
    if told is not None:
        yield _two_environments(*told, "torch", python, system)
        return
    for number, other in enumerate(contradictions or ()):
        own = reported(symptoms, "python-of-its-own")
        if own and other.fact == "torch.version" and "(pip in" in f"{other.taken}{other.other}":
            summary = f"The program brings its own Python, and pip lists another PyTorch: {other.taken}, {other.other}"
            yield _two_environments(summary, (f"contradictions[{number}].other", own[0][0]), "torch", python, system)
            return
    python = known(python, "python")
    active = known(python.active_environment, "python.active_environment")
    skip_unless(active, "no environment is activated")
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


def _told(symptoms: tuple[Symptom, ...] | None) -> tuple[str, tuple[str, ...]] | None:
    """Return the summary and the facts of words that say that two programs of the machine run in two environments."""
    for fact, _ in reported(symptoms, "torch-differs-by-program"):
        return "PyTorch sees the GPU in one program and not in another one on the same machine", (fact,)
    for fact, message in reported(symptoms, "python-interpreters-told"):
        one, two = message.names.get("one", ""), message.names.get("two", "")
        if one and two and one != two:
            return f"Two programs run under two interpreters: {one} and {two}", (fact,)
    return None


@record
class _Elsewhere:
    """What a program failed with, what shows that the package is installed, and that in words."""

    missing: str
    shown: str
    where: str
    module: str


def _torch_elsewhere(
    python: Python | None, torch: Torch | None, symptoms: tuple[Symptom, ...] | None
) -> _Elsewhere | None:
    """Return how a report shows that PyTorch is installed and that a program finds none; None where it does not.

    The build of a package looks into an environment of its own.
    """
    missing = [fact for fact, message in reported(symptoms, "torch-module-missing") if "missing" in message.names]
    if not missing or failed_request(symptoms) is not None or reported(symptoms, "build-lacks-torch-said"):
        return None
    shown = _torch_shown(python, torch, symptoms)
    return _Elsewhere(missing=missing[0], shown=shown[0], where=shown[1], module="torch") if shown else None


def _torch_shown(
    python: Python | None, torch: Torch | None, symptoms: tuple[Symptom, ...] | None
) -> tuple[str, str] | None:
    """Return the fact that shows PyTorch installed, and that in words; None where there is none."""
    listed = package(python, "torch")
    if listed is not None:
        return listed[0], f"torch {listed[1]} is installed"
    for fact, message in reported(symptoms, "torch-installed-there"):
        names = message.names
        where = names.get("path") or names.get("location")
        version = names.get("version") or names.get("shown")
        return fact, f"torch{f' {version}' if version else ''} is installed{f' in {where}' if where else ''}"
    if torch is not None and torch.version is not None:
        return "torch.version", f"torch {torch.version} is installed"
    return None


def _cupy_elsewhere(cupy: Cupy | None, symptoms: tuple[Symptom, ...] | None) -> _Elsewhere | None:
    """Return how a report shows that CuPy is installed and that a program finds none; None where it does not."""
    missing = reported(symptoms, "cupy-not-installed*")
    found = cupy.distributions if cupy is not None else None
    if not missing or not found:
        return None
    where = f" in {found[0].location}" if found[0].location else ""
    there = f"{found[0].name} {found[0].version} is installed{where}"
    return _Elsewhere(missing=missing[0][0], shown="cupy.distributions", where=there, module=found[0].name)


def _two_environments(
    summary: str, facts: tuple[str, ...], module: str, python: Python | None, system: System | None
) -> Finding:
    windows = is_windows(python or Python(), system)
    return Finding(
        severity=Severity.ERROR,
        summary=summary,
        subject="Python",
        facts=facts,
        remedies=(
            Remedy(
                summary="Let pip and the program use one environment: activate it (conda activate NAME, or the "
                "activate script of the venv), or select its interpreter in the editor or as the notebook's kernel, "
                "and install with python -m pip, which installs for the Python that runs it; a program that brings its "
                "own Python (python_embeded of ComfyUI, blender) needs that one's: "
                "python_embeded\\python.exe -m pip install",
                commands=(
                    f"{'where' if windows else 'which -a'} python pip",
                    'python -c "import sys; print(sys.executable, sys.version)"',
                    f"python -m pip show {module}",
                ),
                reference="https://docs.python.org/3/installing/index.html",
            ),
        ),
    )


def _through_python() -> Remedy:
    """Return how to keep the launchers and packages of the user's own folder out of an environment."""
    return Remedy(
        summary="Start the program through the Python of the environment (python -m torch.distributed.run in place of "
        "torchrun), without the packages in ~/.local: PYTHONNOUSERSITE=1, or uninstall the PyTorch there",
        commands=(
            "which -a python torchrun",
            'PYTHONNOUSERSITE=1 python -c "import torch; print(torch.__version__, torch.__file__)"',
        ),
        reference="https://docs.python.org/3/using/cmdline.html#envvar-PYTHONNOUSERSITE",
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
