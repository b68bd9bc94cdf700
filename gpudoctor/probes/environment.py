"""The environment variables that affect GPUs, and no others."""

from collections.abc import Mapping

from gpudoctor.data.environment_variables import environment_variables, variables_with_paths
from gpudoctor.model import Environment
from gpudoctor.untrusted import shown_value

LONGEST_VALUE = 4096


def known_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Return those variables of `environ` that are in the project's table."""
    names = sorted(environment_variables())
    return {name: environ[name] for name in names if name in environ}


def parse_environment(environ: Mapping[str, str]) -> Environment:
    """Return those variables of `environ` that are in the project's table, long values cut."""
    known, paths = known_variables(environ), variables_with_paths()
    return Environment(
        variables={name: shown_value(text[:LONGEST_VALUE], name in paths) for name, text in known.items()}
    )
