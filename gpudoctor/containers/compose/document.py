"""The files of a compose project, read into one document: variables replaced, `extends` followed, files merged."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from gpudoctor.containers.bounded_files import read_bounded
from gpudoctor.containers.compose.canonical import absolute, canonical_service
from gpudoctor.containers.compose.files import ComposeFiles
from gpudoctor.containers.compose.interpolation import Interpolation
from gpudoctor.containers.compose.merge import merge
from gpudoctor.containers.compose.yaml_document import MAXIMUM_BYTES, Value, parse_yaml
from gpudoctor.model.record import record

_MOST_EXTENDS = 20


@record
class Document:
    """A whole project.

    name: of the project. services: name → service in its canonical form. volumes: the named ones.
    """

    name: str
    services: Mapping[str, Value]
    volumes: Mapping[str, Value]


def read_document(files: ComposeFiles) -> Document:
    """Return the project that the files make.

    Raises:
        ValueError: a file is wrong, or holds what is not understood; the message names file and line.
        OSError: a file cannot be read.
    """
    roots = [read_root(file) for file in files.files]
    name = project_name(roots, files)
    reading = _Reading({**files.environment, "COMPOSE_PROJECT_NAME": name})
    merged: Value | None = None
    for root in roots:
        services = {key: reading.service(root, key, files.directory) for key in section(root, "services")}
        volumes = {key: reading.interpolated(value) for key, value in section(root, "volumes").items()}
        both = {"services": root.with_content(dict(services)), "volumes": root.with_content(dict(volumes))}
        merged = _merge_files(merged, root.with_content({key: value for key, value in both.items() if value.content}))
    entries = merged.mapping() if merged is not None else {}
    if "services" not in entries:
        raise roots[0].error("it has no services")
    return Document(
        name=name,
        services=entries["services"].mapping(),
        volumes=entries["volumes"].mapping() if "volumes" in entries else {},
    )


def read_root(path: Path) -> Value:
    """Return the mapping that a compose file is.

    Raises:
        ValueError: it is none, or includes other files; the message names file and line.
        OSError: it cannot be read.
    """
    root = parse_yaml(read_bounded(path, MAXIMUM_BYTES), str(path))
    entries = root.mapping()
    if "include" in entries:
        raise entries["include"].error("`include` is not understood here; `docker compose` of version 2.20 reads it")
    return root


def section(root: Value, name: str) -> dict[str, Value]:
    """Return the entries of a top-level mapping; {} where it is not there."""
    entries = root.mapping()
    return entries[name].mapping() if name in entries else {}


def project_name(roots: list[Value], files: ComposeFiles) -> str:
    """Return COMPOSE_PROJECT_NAME, else the `name` of the last file that has one, else that of the folder.

    Raises:
        ValueError: nothing is left of it, or the `name` of a file is none.
    """
    given = files.environment.get("COMPOSE_PROJECT_NAME", "")
    if given:
        name = _as_project_name(given)
    elif written := [root.mapping()["name"] for root in roots if "name" in root.mapping()]:
        name = _interpolate(written[-1], Interpolation(files.environment)).text()
        if name != _as_project_name(name):
            raise written[-1].error(f"{name[:80]!r} is no project name: it has other characters than a-z, 0-9, - and _")
    else:
        name = _as_project_name(files.directory.name)
    if not name:
        raise ValueError(f"{files.files[0]}: the project has no name: set COMPOSE_PROJECT_NAME")
    return name


def _as_project_name(text: str) -> str:
    return re.sub(r"[^-_a-z0-9]", "", text.lower()).lstrip("-_")


def _merge_files(base: Value | None, over: Value) -> Value | None:
    """Return one file over another: services and volumes of the same name are merged."""
    if base is None:
        base = over.with_content({})
    found: dict[str, Value] = dict(base.mapping())
    for name, entries in over.mapping().items():
        below = dict(found[name].mapping()) if name in found else {}
        for key, value in entries.mapping().items():
            merged = merge(below.get(key), value)
            if merged is None:
                below.pop(key, None)
            else:
                below[key] = merged
        found[name] = entries.with_content(below)
    return base.with_content(found)


class _Reading:
    """What all files of one project share: the variables, and the files that are extended."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._variables = variables
        self._interpolation = Interpolation(variables)
        self._roots: dict[str, Value] = {}

    def interpolated(self, value: Value) -> Value:
        """Return `value` with its variables replaced."""
        return _interpolate(value, self._interpolation)

    def service(self, root: Value, name: str, directory: Path, before: tuple[tuple[str, str], ...] = ()) -> Value:
        """Return a service of one file in its canonical form, laid over the one that it extends.

        directory: to which its paths are relative. before: (file, service) of those that extend it.
        """
        written = section(root, "services")[name]
        place = (root.file, name)
        if place in before or len(before) > _MOST_EXTENDS:
            raise written.error(f"{name} extends itself")
        service = canonical_service(self.interpolated(written), directory, self._variables)
        entries = dict(service.mapping())
        extends = entries.pop("extends", None)
        if extends is None or extends.tag == "!reset":
            return service.with_content(entries)
        base = self._extended(root, extends, directory, (*before, place))
        merged = merge(base, service.with_content(entries))
        return service.with_content({}) if merged is None else replace(merged, tag=service.tag)

    def _extended(self, root: Value, extends: Value, directory: Path, before: tuple[tuple[str, str], ...]) -> Value:
        fields = extends.mapping() if isinstance(extends.content, dict) else {"service": extends}
        if "service" not in fields:
            raise extends.error("extends: `service` is missing")
        name = fields["service"].text()
        if "file" in fields:
            path = absolute(fields["file"].text(), directory)
            if path != os.path.abspath(root.file):
                root, directory = self._root(fields["file"], path), Path(path).parent
        if name not in section(root, "services"):
            raise extends.error(f"extends: there is no service {name[:80]!r} in {root.file}")
        return self.service(root, name, directory, before)

    def _root(self, written: Value, path: str) -> Value:
        if path not in self._roots:
            try:
                self._roots[path] = read_root(Path(path))
            except OSError as error:
                raise written.error(f"extends: {path}: {error.strerror}") from None
        return self._roots[path]


def _interpolate(value: Value, interpolation: Interpolation) -> Value:
    content = value.content
    if isinstance(content, dict):
        return value.with_content({name: _interpolate(item, interpolation) for name, item in content.items()})
    if isinstance(content, list):
        return value.with_content([_interpolate(item, interpolation) for item in content])
    if isinstance(content, str) and "$" in content:
        try:
            return value.with_content(interpolation.apply(content))
        except ValueError as error:
            raise value.error(str(error)) from None
    return value
