"""The environment that runs against the one that is activated."""

from collections.abc import Iterator

from gpudoctor.model import CupyStatus, Finding, Fix, Project, Python, Pytorch, Severity, TorchNeed, TwoEnvironments
from gpudoctor.registry import check, known, skip_unless


@check(
    family="python",
    explains=(
        *("torch-not-installed", "torch-cuda-unavailable", "torch-cpu-build", "cupy-missing", "runs-on-cpu"),
        "python-version-no-wheel",
    ),
)
def wrong_python_environment(
    two_environments: TwoEnvironments,
    pytorch: Pytorch,
    cupy_status: CupyStatus,
    torch_need: TorchNeed,
    python: Python = Python(),
    project: Project = Project(),
) -> Iterator[Finding]:
    """The program runs in a different Python environment than the activated one, and PyTorch is not in it.

    Why: an alias, a notebook kernel, a service or a tool with its own environment starts another interpreter, which
    does not see packages installed after "activate".
    Exception: an environment that has what the program needs passes. If neither the project nor a GPU asks for PyTorch,
    this is advice. A report in which PyTorch or CuPy is installed, but a program finds none, shows two environments,
    whatever their names.
    Reference: https://docs.python.org/3/library/venv.html#how-venvs-work
    """
    if two_environments.facts:
        one_environment = Fix("use-one-environment", module=two_environments.module)
        yield Finding.error(
            "Python",
            two_environments.summary,
            two_environments.facts,
            Fix("start-through-python") if two_environments.launcher else None,
            one_environment,
            certain=two_environments.certain,
        )
        return
    active = known(python.active_environment, "python.active_environment")
    skip_unless(active, "no environment is activated")
    prefix = known(python.prefix, "python.prefix")
    if _normal(active) == _normal(prefix):
        return
    severity = Severity.ERROR
    if cupy_status.installed is False and project.always_requires("cupy*"):
        missing, module = "CuPy", "cupy"
        facts: tuple[str, ...] = ("cupy_runtime.import_error" if cupy_status.absent else "cupy.distributions",)
    elif known(pytorch.installed, "torch.installed") or (cupy_status.installed and not torch_need.of_torch):
        return
    else:
        missing, module, facts = "PyTorch", "torch", pytorch.paths("installed")
        severity = Severity.INFO if torch_need.severity is Severity.INFO else Severity.ERROR
    yield Finding.of(
        severity,
        f"Python {python.version}" if python.version else "Python",
        f"The environment {active} is activated, but the Python that runs is from {prefix}, which has no {missing}",
        ("python.active_environment", "python.prefix", *facts),
        Fix("use-activated-python", missing=missing, module=module),
    )


def _normal(folder: str) -> str:
    """Return the folder in a form that can be compared. Windows ignores case."""
    return folder.replace("\\", "/").rstrip("/").lower() if "\\" in folder else folder.rstrip("/")
