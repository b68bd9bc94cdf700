"""A compose project as the user's own `docker compose` or `docker-compose` reads it."""

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from typing import IO

from gpudoctor.containers.compose.files import ComposeFiles
from gpudoctor.containers.compose.yaml_document import MAXIMUM_BYTES

_SETTINGS = {
    "COMPOSE_EXPERIMENTAL_GIT_REMOTE": "0",  # version 2 would fetch what a file includes from the network
    "COMPOSE_EXPERIMENTAL_OCI_REMOTE": "0",
    "COMPOSE_PROFILES": "*",  # version 2 leaves out services of other profiles; version 1 writes all, and knows no "*"
}
_KILLED_SECONDS = 1.0
_COMPLAINT_BYTES = 500


class NotRead(Exception):
    """The command could not read the project. The text is its error message; "" if there is none."""


def commands(files: ComposeFiles) -> Iterator[tuple[str, list[str]]]:
    """Yield the name and command line of each installed compose command, the newer one first."""
    named = (part for file in files.files for part in ("-f", str(file)))
    places = ["--project-directory", str(files.directory), *named]
    path = files.environ.get("PATH")
    if docker := shutil.which("docker", path=path):
        yield "docker compose", [docker, "compose", *places, "config", "--format", "json"]
    if version_1 := shutil.which("docker-compose", path=path):
        yield "docker-compose", [version_1, *places, "config"]


def answer_of(arguments: list[str], files: ComposeFiles, timeout_seconds: float) -> bytes:
    """Return the output of the command. It reads the `.env` itself.

    Raises:
        NotRead: it fails, takes too long or writes too much; the text is the last line of its error output.
    """
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        try:
            process = subprocess.Popen(
                arguments,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                cwd=files.directory,
                env={**files.environ, **_SETTINGS},
                start_new_session=True,
            )
        except OSError:
            raise NotRead from None
        try:
            status = process.wait(timeout_seconds)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_KILLED_SECONDS)
            raise NotRead from None
        if status != 0:
            raise NotRead(_last_line(errors))
        if output.seek(0, os.SEEK_END) > MAXIMUM_BYTES:
            raise NotRead
        output.seek(0)
        return output.read()


def _last_line(output: IO[bytes]) -> str:
    output.seek(max(0, output.seek(0, os.SEEK_END) - _COMPLAINT_BYTES))
    lines = output.read().decode(errors="replace").splitlines()
    return next((line.strip() for line in reversed(lines) if line.strip()), "")
