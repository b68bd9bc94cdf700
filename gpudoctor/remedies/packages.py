"""Installing and removing Python packages in the environment diagnosed."""

from collections.abc import Sequence

from gpudoctor.model import Python, Remedy
from gpudoctor.remedies.commands import Environment, environment_of
from gpudoctor.remedies.fixes import fix


@fix
def install_packages(  # noqa: PLR0913
    *,
    python: Python | None,
    requirements: Sequence[str],
    summary: str,
    remove: Sequence[str] = (),
    force: bool = False,
    first: str = "",
    verify: str = "",
    reference: str | None = None,
) -> Remedy:
    """Return how to remove packages and then install others, with the tool and interpreter of the environment.

    requirements: as pip takes them: "numpy<2", "cupy-cuda12x[ctk]". force: also what is already satisfied.
    first: a command that shows what to choose. verify: Python code that shows that it worked.
    """
    environment = environment_of(python)
    commands = [*([first] if first else []), *environment.setup]
    commands += () if environment.setup else removals(environment, python, remove)
    if requirements:
        commands.append(environment.install(requirements, force=force))
    if verify:
        commands.append(environment.run(verify))
    return Remedy(summary=summary, commands=tuple(commands), reference=reference)


def removals(environment: Environment, python: Python | None, names: Sequence[str]) -> list[str]:
    """Return the commands that remove distributions, each by the tool that installed it."""
    packages = (python.packages if python is not None else None) or ()
    of_conda = {package.name for package in packages if package.installer == "conda"}
    by_conda = [name for name in names if name in of_conda and environment.conda_prefix]
    by_pip = [name for name in names if name not in by_conda]
    commands = [environment.conda("remove", by_conda)] if by_conda else []
    return [*commands, environment.uninstall(by_pip)] if by_pip else commands
