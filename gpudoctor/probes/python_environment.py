"""The Python environment that is diagnosed: which it is, what manages it, and what is installed in it."""

import re
from collections.abc import Mapping
from typing import Any

from gpudoctor.model import Package, PackageVersion, Python
from gpudoctor.parsers.conda import torch_record
from gpudoctor.parsers.environment_facts import EnvironmentFacts, package_of, parse_environment_facts
from gpudoctor.probes.host import ProbeContext, active_environment, interpreter_of


def arguments(setting: ProbeContext) -> Mapping[str, str]:
    """Return the worker's arguments: the working directory, and the environment that the shell has activated.

    The latter is "" if the user names another environment by its interpreter.
    """
    active = active_environment(setting.environ)
    is_active = setting.interpreter in (None, interpreter_of(active))
    return {"directory": str(setting.directory), "active": active if is_active else ""}


def parse_python(facts: Mapping[str, Any]) -> Python:
    """Return the section from the worker's facts. Raises ValueError: they are not the worker's."""
    read = parse_environment_facts(facts)
    interpreter = read.interpreter
    return Python(
        version=PackageVersion(interpreter.version),
        executable=interpreter.executable,
        prefix=interpreter.prefix,
        environment=_environment(read),
        active_environment=interpreter.active,
        installer=_installer(read),
        project=interpreter.project,
        externally_managed=interpreter.externally_managed,
        free_threaded=interpreter.free_threaded,
        platform_tag=re.sub(r"[-.]", "_", interpreter.platform),
        packages=_packages(read),
        shadowed_modules=read.shadowing,
    )


def _environment(read: EnvironmentFacts) -> str:
    """Return the kind of environment. One made by venv from conda's Python is a venv."""
    interpreter = read.interpreter
    if interpreter.pyvenv_cfg is not None or interpreter.prefix != interpreter.base_prefix:
        return "venv"
    return "system" if read.conda is None else "conda"


def _installer(read: EnvironmentFacts) -> str:
    """Return the tool whose commands change this environment.

    uv writes a line `uv = VERSION` into pyvenv.cfg, and leaves pip out. In conda's environments pip may have
    installed PyTorch; the tool that installed it has to replace it.
    """
    torch = next(iter(read.distributions_named("torch")), None)
    installer = torch.installer if torch else ""
    if re.search(r"(?m)^\s*uv\s*=", read.interpreter.pyvenv_cfg or "") or (
        installer == "uv" and not read.interpreter.pip
    ):
        return "uv"
    if _environment(read) == "conda":
        from_conda = installer == "conda" or (not installer and torch_record(read.conda_records) is not None)
        return "conda" if from_conda or not read.interpreter.pip else "pip"
    return "pip"


def _packages(read: EnvironmentFacts) -> tuple[Package, ...]:
    """Return the distributions, then conda's packages that are not Python distributions: cuda-version, cpuonly."""
    packages = [package_of(distribution) for distribution in read.distributions]
    names = {package.name for package in packages} | {"pytorch", "python"}
    folder = f"{read.interpreter.prefix}/conda-meta"
    for record in read.conda_records:
        if record.name not in names:
            version = PackageVersion(record.version)
            packages.append(Package(name=record.name, version=version, installer="conda", location=folder))
    return tuple(packages)
