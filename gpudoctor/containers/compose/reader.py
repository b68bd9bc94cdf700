"""Read the compose project of a folder, or of a file."""

from collections.abc import Mapping
from pathlib import Path

from gpudoctor.containers.compose.command import NotRead, ask_command
from gpudoctor.containers.compose.document import Document, read_document
from gpudoctor.containers.compose.files import ComposeFiles, find_files
from gpudoctor.containers.compose.project import Project
from gpudoctor.containers.compose.services import service_of

COMMAND_SECONDS = 5.0
"""docker-compose 1.29, which is written in Python, took 0.9 s for a small project (2 cores, 2026-11)."""


def read_project(path: Path, environ: Mapping[str, str], command_seconds: float = COMMAND_SECONDS) -> Project:
    """Return the compose project of the folder `path` (or of those above it), or of the file `path`.

    The user's own command line reads it, where there is one; else it is read here, by the rules of Compose v2.

    command_seconds: for each command line that may be asked; 0 asks none.

    Raises:
        NoComposeFile: there is none.
        ValueError: a file is wrong, or holds what is not understood; the message names file and place.
    """
    files = find_files(path, environ)
    complaint = ""
    if command_seconds > 0:
        try:
            read_by, document = ask_command(files, command_seconds)
            return _project(files, document, read_by)
        except NotRead as error:
            complaint = str(error)
    try:
        return _project(files, read_document(files), "gpudoctor")
    except ValueError as error:
        raise ValueError(f"{error} ({complaint})" if complaint else str(error)) from None


def _project(files: ComposeFiles, document: Document, read_by: str) -> Project:
    return Project(
        name=document.name,
        directory=str(files.directory),
        files=tuple(map(str, files.files)),
        services=tuple(
            service_of(name, document.name, fields, files.environment) for name, fields in document.services.items()
        ),
        profiles=files.profiles,
        read_by=read_by,
    )
