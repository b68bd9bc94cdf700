"""Which files make a compose project, and the variables that are in them.

Source: https://docs.docker.com/compose/how-tos/environment-variables/envvars/ ; the orders are those of Compose v2.
"""

import os
from collections.abc import Mapping
from pathlib import Path

from gpudoctor.containers.compose.interpolation import read_env_file
from gpudoctor.model.record import record

NAMES = ("compose.yaml", "compose.yml", "docker-compose.yml", "docker-compose.yaml")
OVERRIDE_NAMES = (
    "compose.override.yml",
    "compose.override.yaml",
    "docker-compose.override.yml",
    "docker-compose.override.yaml",
)


class NoComposeFile(Exception):
    """Neither the folder nor the folders above it have a compose file."""


@record
class ComposeFiles:
    """The files of a project, in the order in which they are merged.

    directory: of the project: that of the first file.
    environ: the variables that are set without the directory's `.env`. environment: those, then those of `.env`.
    """

    files: tuple[Path, ...]
    directory: Path
    environ: Mapping[str, str]
    environment: Mapping[str, str]

    @property
    def profiles(self) -> tuple[str, ...]:
        """Return the profiles that are switched on."""
        names = (name.strip() for name in self.environment.get("COMPOSE_PROFILES", "").split(","))
        return tuple(name for name in names if name)


def find_files(path: Path, environ: Mapping[str, str]) -> ComposeFiles:
    """Return the files that compose reads if it is started in the folder `path`, or with the file `path`.

    Raises:
        NoComposeFile: there is none.
        ValueError: a `.env` is wrong; the message names file and line.
        OSError: a `.env` cannot be read.
    """
    path = Path(os.path.abspath(path))
    if not path.is_dir():
        if not path.is_file():
            raise NoComposeFile(f"there is no file {path}")
        files: tuple[Path, ...] = (path,)
    else:
        environment = _with_env_file(environ, path)
        files = _named(path, environment) or _default(path)
        environ = environ if files[0].parent == path else environment
    environment = _with_env_file(environ, files[0].parent)
    return ComposeFiles(files=files, directory=files[0].parent, environ=environ, environment=environment)


def _with_env_file(environment: Mapping[str, str], directory: Path) -> dict[str, str]:
    """Return the variables with those of the folder's `.env` that are not set yet."""
    path = directory / ".env"
    is_off = environment.get("COMPOSE_DISABLE_ENV_FILE", "").lower() in ("1", "t", "true")
    if is_off or not path.is_file():
        return dict(environment)
    return {**read_env_file(path, environment), **environment}


def _named(directory: Path, environment: Mapping[str, str]) -> tuple[Path, ...]:
    """Return the files that COMPOSE_FILE names, relative to the folder."""
    names = environment.get("COMPOSE_FILE", "")
    if not names:
        return ()
    separator = environment.get("COMPOSE_PATH_SEPARATOR") or os.pathsep
    files = tuple(Path(os.path.abspath(directory / name)) for name in names.split(separator) if name)
    for file in files:
        if not file.is_file():
            raise NoComposeFile(f"COMPOSE_FILE names {file}, which does not exist")
    return files


def _default(start: Path) -> tuple[Path, ...]:
    for directory in (start, *start.parents):
        found = _first(directory, NAMES)
        if found is not None:
            override = _first(directory, OVERRIDE_NAMES)
            return (found,) if override is None else (found, override)
    raise NoComposeFile(f"no compose file in {start} or the folders above it")


def _first(directory: Path, names: tuple[str, ...]) -> Path | None:
    return next((directory / name for name in names if (directory / name).is_file()), None)
