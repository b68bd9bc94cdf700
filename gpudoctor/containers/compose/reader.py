"""Read the compose project of a folder, or of a file: by the user's own command line, or else here.

What is rare (`extends`, `include`, the tags !reset and !override) is refused here, never misread.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gpudoctor.containers.compose.command import NotRead, answer_of, commands
from gpudoctor.containers.compose.files import ComposeFiles, find_files
from gpudoctor.containers.compose.interpolation import Interpolation
from gpudoctor.containers.compose.project import Project
from gpudoctor.containers.compose.services import mapping_of, service_fields, service_of
from gpudoctor.containers.compose.yaml_document import MAXIMUM_BYTES, map_texts, parse_yaml, text_of
from gpudoctor.files import read_bounded

COMMAND_SECONDS = 5.0
"""docker-compose 1.29, which is written in Python, took 0.9 s for a small project (2 cores, 2026-11)."""


def read_project(path: Path, environ: Mapping[str, str], command_seconds: float = COMMAND_SECONDS) -> Project:
    """Return the compose project of the folder `path` (or of those above it), or of the file `path`.

    The user's own command line reads it, if there is one; else it is read here, by the rules of Compose v2.

    command_seconds: for each command line that may be asked; 0 asks none.

    Raises:
        NoComposeFile: there is none.
        ValueError: a file is wrong, or contains what is not understood; the message names file and place.
        OSError: a file cannot be read.
    """
    files = find_files(path, environ)
    complaints: list[str] = []
    for command, arguments in commands(files) if command_seconds else ():
        try:
            return _read_by_command(command, answer_of(arguments, files, command_seconds), files)
        except (NotRead, ValueError) as error:  # noqa: PERF203
            complaints += [f"{command}: {error}"] if str(error) else []
    try:
        return _read_here(files)
    except ValueError as error:
        raise ValueError(f"{error} ({complaints[0]})" if complaints else str(error)) from None


def _read_by_command(command: str, answer: bytes, files: ComposeFiles) -> Project:
    """Return the project that the command writes. It writes two dollars for one, so that this is a compose file."""
    root = mapping_of(map_texts(parse_yaml(answer, f"{command} config"), lambda text: text.replace("$$", "$")))
    services = mapping_of(root.get("services"))
    # The command has put in every value that it knows; what is null has none.
    fields = {name: service_fields(mapping_of(value), files.directory, {}) for name, value in services.items()}
    return _project(files, _project_name([root["name"]] if "name" in root else [], files), fields, command)


def _read_here(files: ComposeFiles) -> Project:
    """Return the project that the files make: variables replaced, files merged."""
    roots = {file: _read_root(file) for file in files.files}
    named = [(file, root["name"]) for file, root in roots.items() if "name" in root]
    try:
        name = _project_name([written for _, written in named], files)
    except ValueError as error:
        raise ValueError(f"{named[-1][0] if named else files.files[0]}: {error}") from None
    environ = {**files.environment, "COMPOSE_PROJECT_NAME": name}
    interpolation = Interpolation(environ)
    services: dict[str, Any] = {}
    for file, root in roots.items():
        for key, written in mapping_of(root.get("services")).items():
            try:
                own = service_fields(mapping_of(map_texts(written, interpolation.apply)), files.directory, environ)
            except ValueError as error:
                raise ValueError(f"{file}: {key}: {error}") from None
            services[key] = _merged(services.get(key, {}), own)
    if not services:
        raise ValueError(f"{files.files[0]}: it has no services")
    return _project(files, name, services, "gpudoctor")


def _project(files: ComposeFiles, name: str, services: Mapping[str, Mapping[str, Any]], read_by: str) -> Project:
    return Project(
        name=name,
        directory=str(files.directory),
        files=tuple(map(str, files.files)),
        services=tuple(service_of(key, name, fields, files.environment) for key, fields in services.items()),
        profiles=files.profiles,
        read_by=read_by,
    )


def _project_name(written: list[Any], files: ComposeFiles) -> str:
    """Return COMPOSE_PROJECT_NAME, else the last `name` written, else that of the folder."""
    given = files.environment.get("COMPOSE_PROJECT_NAME", "")
    if written and not given:
        given = Interpolation(files.environment).apply(text_of(written[-1]))
        if given != _as_project_name(given):
            raise ValueError(f"{given[:80]!r} is not a project name: it may contain only a-z, 0-9, - and _")
    name = _as_project_name(given or files.directory.name)
    if not name:
        raise ValueError("the project has no name: set COMPOSE_PROJECT_NAME")
    return name


def _as_project_name(text: str) -> str:
    return re.sub(r"[^-_a-z0-9]", "", text.lower()).lstrip("-_")


def _read_root(path: Path) -> dict[str, Any]:
    root = parse_yaml(read_bounded(path, MAXIMUM_BYTES), str(path))
    try:
        entries = mapping_of(root)
        mapping_of(entries.get("services"))
        if "include" in entries:
            raise ValueError("`include` needs `docker compose` 2.20 or newer")
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    return entries


def _merged(base: Any, over: Any) -> Any:
    """Return one over the other: mappings key by key, sequences one after the other, of anything else the last."""
    if isinstance(base, dict) and isinstance(over, dict):
        return {**base, **{name: _merged(base.get(name), item) for name, item in over.items()}}
    if isinstance(base, list) and isinstance(over, list):
        return [*base, *(item for item in over if item not in base)]
    return over
