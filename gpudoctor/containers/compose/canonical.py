"""One form for each field of a compose service that users may write in several: easy to merge and to read.

Lists of NAME=value become mappings, short volumes long ones, and relative paths absolute. Only the fields that are read
are touched. Source: https://docs.docker.com/reference/compose-file/services/
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from gpudoctor.containers.compose.yaml_document import Value

_DRIVE = re.compile(r"[A-Za-z]:[\\/]")
_DRIVE_OF_A_VOLUME = re.compile(r"[A-Za-z]:(?=\\|/[^:]*:/)")
"""In c:/source:/target, but not in c:/target, where `c` can only be the name of a volume."""

_REMOTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://|github\.com/|git@|service:")


def canonical_service(service: Value, directory: Path, environ: Mapping[str, str]) -> Value:
    """Return the service in one form.

    directory: to which its paths are relative. environ: gives the values where only names are written.

    Raises:
        ValueError: a field has a form that is not understood; the message names file and line.
    """
    entries = dict(service.mapping())
    forms: dict[str, Callable[[Value], Value]] = {
        "build": lambda value: _build(value, directory, environ),
        "devices": lambda value: value.with_content([_device(item) for item in value.sequence()]),
        "env_file": lambda value: _env_file(value, directory),
        "environment": lambda value: _pairs(value, environ),
        "gpus": _gpus,
        "tmpfs": _texts,
        "volumes": lambda value: value.with_content([_volume(item, directory) for item in value.sequence()]),
    }
    for name, form in forms.items():
        if name in entries and entries[name].tag != "!reset":
            entries[name] = form(entries[name])
    return service.with_content(entries)


def absolute(path: str, directory: Path) -> str:
    """Return `path` absolute; `~` is the home directory."""
    return os.path.abspath(directory / os.path.expanduser(path))


def is_remote(context: str) -> bool:
    """Return whether a build context is no folder of this machine."""
    return _REMOTE.match(context) is not None


def _build(build: Value, directory: Path, environ: Mapping[str, str]) -> Value:
    if isinstance(build.content, str):
        return build.with_content({"context": _context(build, directory)})
    entries = dict(build.mapping())
    if "context" in entries:
        entries["context"] = _context(entries["context"], directory)
    if "args" in entries and entries["args"].tag != "!reset":
        entries["args"] = _pairs(entries["args"], environ)
    if "additional_contexts" in entries and entries["additional_contexts"].tag != "!reset":
        contexts = _pairs(entries["additional_contexts"], {})
        paths = {name: _context(path, directory) for name, path in contexts.mapping().items()}
        entries["additional_contexts"] = contexts.with_content(paths)
    return build.with_content(entries)


def _context(context: Value, directory: Path) -> Value:
    path = context.text()
    return context if is_remote(path) else context.with_content(absolute(path, directory))


def _pairs(value: Value, environ: Mapping[str, str]) -> Value:
    """Return a mapping NAME → text, from a mapping or a list of NAME=text.

    A name without a text gets that of the environment; where that has none either, null.
    """
    if isinstance(value.content, list):
        pairs = [(item, *item.text().partition("=")) for item in value.content]
        entries = {name: item.with_content(text if equals else None) for item, name, equals, text in pairs}
    else:
        entries = dict(value.mapping())
    return value.with_content({name: _from_environment(name, item, environ) for name, item in entries.items()})


def _from_environment(name: str, value: Value, environ: Mapping[str, str]) -> Value:
    return value.with_content(environ.get(name) if value.content is None else value.text())


def _texts(value: Value) -> Value:
    """Return a sequence of a single text or a sequence."""
    return value.with_content([value]) if isinstance(value.content, str) else value


def _env_file(value: Value, directory: Path) -> Value:
    return value.with_content([_one_env_file(item, directory) for item in _texts(value).sequence()])


def _one_env_file(value: Value, directory: Path) -> Value:
    entries = {"path": value} if isinstance(value.content, str) else dict(value.mapping())
    if "path" not in entries:
        raise value.error("env_file: `path` is missing")
    if "format" in entries:
        raise entries["format"].error("env_file: `format` is not understood")
    entries["path"] = value.with_content(absolute(entries["path"].text(), directory))
    return value.with_content(entries)


def _gpus(value: Value) -> Value:
    if value.content == "all":
        return value.with_content([value.with_content({"count": value.with_content(-1)})])
    return value.with_content(value.sequence())


def _device(value: Value) -> Value:
    """Return {source, target, permissions}; a CDI name ("nvidia.com/gpu=all") is its own target."""
    if not isinstance(value.content, str):
        return value.with_content(value.mapping())
    source, _, rest = value.content.partition(":")
    target, _, permissions = rest.partition(":")
    texts = {"source": source, "target": target or source, "permissions": permissions}
    return value.with_content({name: value.with_content(text) for name, text in texts.items() if text})


def _volume(value: Value, directory: Path) -> Value:
    """Return {type, source, target, read_only}: `source` of a bind mount is absolute, and not there where none is."""
    entries = dict(value.mapping()) if isinstance(value.content, dict) else _short_volume(value)
    kind = entries["type"].text() if "type" in entries else ""
    if not kind or "target" not in entries:
        raise value.error(f"volumes: `{'target' if kind else 'type'}` is missing")
    source = entries["source"].text() if "source" in entries else ""
    if kind == "bind" and not source:
        raise value.error("volumes: `source` is missing")
    if kind == "bind" and not _DRIVE.match(source):
        entries["source"] = value.with_content(absolute(source, directory))
    entries["target"] = value.with_content(_clean_target(entries["target"].text()))
    return value.with_content(entries)


def _clean_target(path: str) -> str:
    return path if "\\" in path else posixpath.normpath(path)


def _short_volume(value: Value) -> dict[str, Value]:
    """Return the fields of [SOURCE:]TARGET[:MODE]."""
    parts = _split_at_colons(value.text())
    if len(parts) > 3 or not all(parts):
        raise value.error(f"volumes: {value.text()[:80]!r} is not SOURCE:TARGET:MODE")
    if len(parts) == 1:
        return {"type": value.with_content("volume"), "target": value.with_content(parts[0])}
    source = parts[0]
    is_path = source[0] in "./~" or source.startswith("\\\\") or _DRIVE.match(source) is not None
    modes = parts[2].split(",") if len(parts) == 3 else []
    return {
        "type": value.with_content("bind" if is_path else "volume"),
        "source": value.with_content(source),
        "target": value.with_content(parts[1]),
        "read_only": value.with_content("ro" in modes),
    }


def _split_at_colons(text: str) -> list[str]:
    """Return the parts between the colons, of which that of a Windows drive is none."""
    parts: list[str] = []
    while True:
        drive = _DRIVE_OF_A_VOLUME.match(text)
        colon = text.find(":", drive.end() if drive else 0)
        if colon < 0:
            return [*parts, text]
        parts.append(text[:colon])
        text = text[colon + 1 :]
