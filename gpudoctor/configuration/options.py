"""What a project lays down for its runs: gpudoctor.toml, [tool.gpudoctor] in pyproject.toml, [gpudoctor] in setup.cfg.

The first found counts, going up from the working directory; in one folder in that order. Nothing is joined.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any

from gpudoctor.configuration.files import Source, find_source
from gpudoctor.configuration.requirements import UNMET, parse_requirement
from gpudoctor.errors import FAIL_ON, GPU_POLICIES
from gpudoctor.model.finding import Severity
from gpudoctor.model.record import record
from gpudoctor.model.requirement import MachineRequirement


@record
class Configuration:
    """What a file says, paths made absolute.

    file: its name as seen from the working directory; "" if there is none.
    select: ids or families. ignore: check id → why it is left out, to be shown. severity: by check id.
    plugins: folder of further checks.
    source: the file itself, for messages on what is wrong with its names of checks.
    """

    file: str = ""
    select: tuple[str, ...] = ()
    ignore: Mapping[str, str] = field(default_factory=dict)
    fail_on: str | None = None
    require: tuple[MachineRequirement, ...] = ()
    severity: Mapping[str, Severity] = field(default_factory=dict)
    compose: str | None = None
    profile: str | None = None
    plugins: str | None = None
    gpu: str | None = None
    source: Source | None = field(default=None, compare=False)


def load_configuration(directory: str) -> Configuration:
    """Return the configuration of the first file from `directory` upwards; an empty one without a file.

    Raises:
        UsageError: it cannot be read, or a key or a value in it is misspelt; the message names file and key.
    """
    source = find_source(directory)
    if source is None:
        return Configuration()
    for key in source.content:
        if key not in _READERS:
            raise source.error(key, f"no such key: {_hint(key, _READERS)}")
    values = {key: read(source) for key, read in _READERS.items() if key in source.content}
    return Configuration(file=source.name, source=source, **values)


def _hint(word: str, known: Any) -> str:
    from difflib import get_close_matches

    near = get_close_matches(word, list(known), n=1)
    return f"did you mean {near[0]}?" if near else f"known are {', '.join(known)}"


def _texts(source: Source, key: str) -> tuple[str, ...]:
    value = source.content[key]
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise source.error(key, "expected a list of strings")
    return tuple(value)


def _require(source: Source) -> tuple[MachineRequirement, ...]:
    return tuple(parse_requirement(text, source.place("require", text)) for text in _texts(source, "require"))


def _one_of(key: str, choices: Sequence[str]) -> Callable[[Source], str]:
    def read(source: Source) -> str:
        value = source.content[key]
        if value not in choices:
            known, hint = ", ".join(choices), _hint(str(value), choices)
            near = "" if known in hint else f": {hint}"
            raise source.error(key, f"{value!r} is not one of {known}{near}")
        return str(value)

    return read


def _ignore(source: Source) -> dict[str, str]:
    value = source.content["ignore"]
    if not isinstance(value, list):
        raise source.error("ignore", 'expected a list of ids, of "id: reason" or of {check = "id", reason = "..."}')
    return dict(_ignored(item, source) for item in value)


def _ignored(item: Any, source: Source) -> tuple[str, str]:
    """Return the id or family, and the reason for the report."""
    if isinstance(item, str):
        name, _, reason = (part.strip() for part in item.partition(":"))
    elif isinstance(item, dict) and all(isinstance(text, str) for text in item.values()):
        for key in item:
            if key not in ("check", "reason"):
                raise source.error("ignore", f"no such key: {key}: {_hint(key, ('check', 'reason'))}", key)
        if "check" not in item:
            raise source.error("ignore", 'an entry names no check: {check = "id", reason = "..."}')
        name, reason = item["check"], item.get("reason", "").strip()
    else:
        raise source.error("ignore", 'an entry is an id, "id: reason" or {check = "id", reason = "..."}')
    where = f"ignored in {os.path.basename(source.path)}"
    return name, f"{where}: {reason}" if reason else where


def _severity(source: Source) -> dict[str, Severity]:
    value = source.content["severity"]
    if not isinstance(value, dict):
        raise source.error("severity", 'expected a table of ids: {id = "warning"}')
    return {name: _one_severity(name, text, source) for name, text in value.items()}


def _one_severity(name: str, text: Any, source: Source) -> Severity:
    if name == UNMET:
        raise source.error("severity", f"{UNMET} is always an error: leave the requirement out instead", name)
    levels = [str(severity) for severity in reversed(Severity)]
    if text in ("off", "none", "ignore", False):
        raise source.error("severity", f"{name}: to leave a check out, name it in ignore, with a reason", name)
    if text not in levels:
        raise source.error("severity", f"{name}: {text!r} is not one of {', '.join(levels)}", name)
    return Severity[str(text).upper()]


def _path(key: str, exists: Callable[[str], bool] | None, kind: str) -> Callable[[Source], str]:
    def read(source: Source) -> str:
        value = source.content[key]
        if not isinstance(value, str) or not value:
            raise source.error(key, f"expected the path of a {kind}")
        path = os.path.join(os.path.dirname(source.path), os.path.expanduser(value))
        if exists is not None and not exists(path):
            raise source.error(key, f"there is no {kind} {value}")
        return path

    return read


_READERS: Mapping[str, Callable[[Source], Any]] = {
    "select": lambda source: _texts(source, "select"),
    "ignore": _ignore,
    "fail_on": _one_of("fail_on", FAIL_ON),
    "gpu": _one_of("gpu", GPU_POLICIES),
    "require": _require,
    "severity": _severity,
    "compose": _path("compose", os.path.isfile, "file"),
    "profile": _path("profile", None, "file"),
    "plugins": _path("plugins", os.path.isdir, "folder"),
}
