"""The environment variables that bear on GPUs, and no others."""

from collections.abc import Mapping

from gpudoctor.data.environment_variables import environment_variables
from gpudoctor.model import Environment

LONGEST_VALUE = 4096


def known_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Return those variables of `environ` that are in the project's table."""
    names = sorted(environment_variables())
    return {name: environ[name] for name in names if name in environ}


def parse_environment(environ: Mapping[str, str]) -> Environment:
    """Return those variables of `environ` that are in the project's table, long values cut."""
    return Environment(variables={name: value[:LONGEST_VALUE] for name, value in known_variables(environ).items()})
