"""A compose project as the user's own `docker compose` or `docker-compose` reads it."""

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from typing import IO

from gpudoctor.containers.compose.document import Document, project_name
from gpudoctor.containers.compose.files import ComposeFiles
from gpudoctor.containers.compose.services import mapping_of, service_fields
from gpudoctor.containers.compose.yaml_document import MAXIMUM_BYTES, map_texts, parse_yaml

_OFFLINE = {"COMPOSE_EXPERIMENTAL_GIT_REMOTE": "0", "COMPOSE_EXPERIMENTAL_OCI_REMOTE": "0"}
"""Compose v2 would fetch what a file includes from the network."""

_ALL_PROFILES = {"COMPOSE_PROFILES": "*"}
"""Version 2 leaves out services of other profiles; version 1 knows no "*", and writes them all."""

_KILLED_SECONDS = 1.0
_COMPLAINT_BYTES = 500


class NotRead(Exception):
    """No command has read the project. The text is what the first one that is there says; "" where it says nothing."""


def ask_command(files: ComposeFiles, timeout_seconds: float) -> tuple[str, Document]:
    """Return the name of the command and what it reads.

    timeout_seconds: for each command.

    Raises:
        NotRead: there is no command, or it does not manage.
    """
    complaints = []
    for command, arguments in _commands(files):
        try:
            return command, _document(command, _answer(arguments, files, timeout_seconds), files)
        except (NotRead, ValueError) as error:  # noqa: PERF203
            complaints.append(f"{command}: {error}" if str(error) else "")
    raise NotRead(next(filter(None, complaints), ""))


def _commands(files: ComposeFiles) -> Iterator[tuple[str, list[str]]]:
    """Yield the name and the command line of each that is installed, the newer one first."""
    places = [
        "--project-directory",
        str(files.directory),
        *(part for file in files.files for part in ("-f", str(file))),
    ]
    docker = shutil.which("docker", path=files.environ.get("PATH"))
    if docker is not None:
        yield "docker compose", [docker, "compose", *places, "config", "--format", "json"]
    version_1 = shutil.which("docker-compose", path=files.environ.get("PATH"))
    if version_1 is not None:
        yield "docker-compose", [version_1, *places, "config"]


def _answer(arguments: list[str], files: ComposeFiles, timeout_seconds: float) -> bytes:
    """Return what the command writes."""
    environment = {**files.environ, **_OFFLINE, **_ALL_PROFILES}  # it reads the `.env` itself
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        try:
            process = subprocess.Popen(
                arguments,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                cwd=files.directory,
                env=environment,
                start_new_session=True,
            )
        except OSError:
            raise NotRead from None
        try:
            status = process.wait(timeout_seconds)
        except subprocess.TimeoutExpired:
            _kill(process)
            raise NotRead from None
        if status != 0:
            raise NotRead(_last_line(errors))
        output.seek(0)
        answer = output.read(MAXIMUM_BYTES + 1)
    if len(answer) > MAXIMUM_BYTES:
        raise NotRead
    return answer


def _last_line(output: IO[bytes]) -> str:
    output.seek(max(0, output.seek(0, os.SEEK_END) - _COMPLAINT_BYTES))
    lines = output.read().decode(errors="replace").splitlines()
    return next((line.strip() for line in reversed(lines) if line.strip()), "")


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill the command with what it started, and wait for it briefly."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_KILLED_SECONDS)


def _document(command: str, answer: bytes, files: ComposeFiles) -> Document:
    """Return the project that the command writes. It writes two dollars for one, so that this is a compose file."""
    root = mapping_of(map_texts(parse_yaml(answer, f"{command} config"), lambda text: text.replace("$$", "$")))
    services = mapping_of(root.get("services"))
    # The command has put in every value that it knows; what is null has none.
    return Document(
        name=project_name([root["name"]] if "name" in root else [], files),
        services={name: service_fields(mapping_of(value), files.directory, {}) for name, value in services.items()},
    )
