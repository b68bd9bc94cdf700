"""The command lines that can build here: docker with or without BuildKit, and compose."""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import field

from gpudoctor.containers.engines.endpoint import find_endpoint
from gpudoctor.model.record import record

ASK_SECONDS = 10.0
"""For a command that says what it is; docker-compose 1.29 takes a second."""


@record
class CommandLine:
    """One program `docker`.

    version: of the client.
    environment: the variables that send it to that engine; none if it goes there by itself.
    """

    path: str
    version: tuple[int, ...]
    has_buildx: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def has_buildkit(self) -> bool:
        """Return whether it builds with BuildKit: up to 20.10 it is built in, later the plugin buildx does it.

        Source: https://docs.docker.com/engine/release-notes/23.0/#new
        """
        return self.has_buildx or self.version < (23,)


@record
class Compose:
    """A compose command. words: the first ones of it. Version 1 builds by the command line of docker.

    environment: as that of CommandLine.
    """

    words: tuple[str, ...]
    is_version_1: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)


def find_docker(environ: Mapping[str, str]) -> tuple[CommandLine, ...]:
    """Return the programs `docker` in PATH order.

    One that is Podman under another name is left out: it builds in its user's own storage, wherever DOCKER_HOST leads.
    """
    folders = os.get_exec_path(environ)
    paths = (shutil.which("docker", path=folder) for folder in dict.fromkeys(folders) if folder)
    found = (_command_line(path, environ) for path in paths if path is not None)
    return tuple(item for item in found if item is not None)


def _command_line(path: str, environ: Mapping[str, str]) -> CommandLine | None:
    match = re.match(r"Docker version (\d+)\.(\d+)", _answer((path, "--version"), environ) or "")
    if match is None:
        return None
    return CommandLine(
        path=path,
        version=(int(match[1]), int(match[2])),
        has_buildx=_answer((path, "buildx", "version"), environ) is not None,
        environment=find_endpoint(environ).environment,
    )


def find_compose(docker: tuple[CommandLine, ...], environ: Mapping[str, str]) -> Compose | None:
    """Return the compose command: the plugin of docker, else docker-compose; None if there is none."""
    for item in docker:
        if _answer((item.path, "compose", "version"), environ) is not None:
            return Compose(words=(item.path, "compose"), environment=item.environment)
    path = shutil.which("docker-compose", path=environ.get("PATH"))
    if path is None:
        return None
    version = _answer((path, "version", "--short"), environ) or ""
    return Compose(words=(path,), is_version_1=version.startswith("1."), environment=find_endpoint(environ).environment)


def _answer(arguments: tuple[str, ...], environ: Mapping[str, str]) -> str | None:
    """Return what the command writes; None if it fails."""
    try:
        done = subprocess.run(
            arguments, env=environ, stdin=subprocess.DEVNULL, capture_output=True, timeout=ASK_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.decode(errors="replace") if done.returncode == 0 else None
