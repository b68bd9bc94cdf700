"""The files of a compose project, read into one document: variables replaced, files merged.

This is the fallback for a machine without `docker compose config`. What is rare (`extends`, `include`, the tags !reset
and !override) is refused, never misread.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gpudoctor.containers.bounded_files import read_bounded
from gpudoctor.containers.compose.files import ComposeFiles
from gpudoctor.containers.compose.interpolation import Interpolation
from gpudoctor.containers.compose.services import mapping_of, service_fields
from gpudoctor.containers.compose.yaml_document import MAXIMUM_BYTES, map_texts, parse_yaml, text_of
from gpudoctor.model.record import record


@record
class Document:
    """A whole project. name: of the project. services: name → its fields in one form (`service_fields`)."""

    name: str
    services: Mapping[str, Mapping[str, Any]]


def read_document(files: ComposeFiles) -> Document:
    """Return the project that the files make.

    Raises:
        ValueError: a file is wrong, or holds what is not understood; the message names the file and the place.
    """
    roots = {file: _read_root(file) for file in files.files}
    named = [(file, root["name"]) for file, root in roots.items() if "name" in root]
    try:
        name = project_name([written for _, written in named], files)
    except ValueError as error:
        raise ValueError(f"{named[-1][0] if named else files.files[0]}: {error}") from None
    environ = {**files.environment, "COMPOSE_PROJECT_NAME": name}
    interpolation = Interpolation(environ)
    services: dict[str, Any] = {}
    for file, root in roots.items():
        for key, written in mapping_of(root.get("services")).items():
            own = _fields(written, f"{file}: {key}", files.directory, environ, interpolation)
            services[key] = _merged(services.get(key, {}), own)
    if not services:
        raise ValueError(f"{files.files[0]}: it has no services")
    return Document(name=name, services=services)


def _fields(
    written: Any, place: str, directory: Path, environ: Mapping[str, str], interpolation: Interpolation
) -> dict[str, Any]:
    try:
        return service_fields(mapping_of(map_texts(written, interpolation.apply)), directory, environ)
    except ValueError as error:
        raise ValueError(f"{place}: {error}") from None


def project_name(written: list[Any], files: ComposeFiles) -> str:
    """Return COMPOSE_PROJECT_NAME, else the last `name` written, else that of the folder.

    Raises:
        ValueError: nothing is left of it, or a `name` is none.
    """
    given = files.environment.get("COMPOSE_PROJECT_NAME", "")
    if written and not given:
        given = Interpolation(files.environment).apply(text_of(written[-1]))
        if given != _as_project_name(given):
            raise ValueError(f"{given[:80]!r} is no project name: it has other characters than a-z, 0-9, - and _")
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
            raise ValueError("`include` is not understood here; `docker compose` of version 2.20 reads it")
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
