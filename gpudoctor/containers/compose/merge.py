"""Services laid over one another: override files, and `extends`.

Source: https://docs.docker.com/reference/compose-file/merge/
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from gpudoctor.containers.compose.yaml_document import Value

_REPLACED = frozenset({("command",), ("entrypoint",), ("healthcheck", "test")})
_BY_NAME = frozenset({("environment",), ("build", "args"), ("ulimits",)})
"""Mappings whose values are replaced as they are: a name without a value hides the value below it."""

_BY_TARGET = frozenset({("volumes",), ("devices",)})

Path = tuple[str, ...]


def merge(base: Value | None, over: Value, path: Path = ()) -> Value | None:
    """Return `over` laid over `base`, both in their canonical form; None where `over` takes it away.

    path: of both in the service.

    Raises:
        ValueError: one is a mapping or a sequence, and the other is not; the message names file and line.
    """
    if over.tag == "!reset":
        return None
    if over.tag == "!override" or base is None or path in _REPLACED:
        return _without_tags(over)
    if over.content is None:
        return base
    if isinstance(base.content, dict) and isinstance(over.content, dict):
        return _merge_mappings(base, over.content, path)
    if isinstance(base.content, list) and isinstance(over.content, list):
        return base.with_content(_merge_sequences(base.content, over.content, path))
    if isinstance(base.content, dict | list) or isinstance(over.content, dict | list):
        raise over.error(f"{'.'.join(path)}: it has another form than in line {base.line} of {base.file}")
    return over


def _merge_mappings(base: Value, over: Mapping[str, Value], path: Path) -> Value:
    if path in _BY_NAME:
        return base.with_content({**base.mapping(), **over})
    entries = dict(base.mapping())
    for name, value in over.items():
        merged = merge(entries.get(name), value, (*path, name))
        if merged is None:
            entries.pop(name, None)
        else:
            entries[name] = merged
    return base.with_content(entries)


def _merge_sequences(base: list[Value], over: list[Value], path: Path) -> list[Value]:
    if path in _BY_TARGET:
        return list({_target(value): value for value in (*base, *over)}.values())
    return [*base, *(value for value in over if not any(_is_same(value, other) for other in base))]


def _target(value: Value) -> str:
    entries = value.mapping()
    if "target" not in entries:
        raise value.error("`target` is missing")
    return entries["target"].text()


def _is_same(value: Value, other: Value) -> bool:
    """Return whether two values are equal, wherever they stand."""
    return plain(value) == plain(other)


def plain(value: Value) -> object:
    """Return the value without the places where its parts stand."""
    if isinstance(value.content, dict):
        return {name: plain(item) for name, item in value.content.items()}
    if isinstance(value.content, list):
        return [plain(item) for item in value.content]
    return value.content


def _without_tags(value: Value) -> Value:
    """Return `value` as if it stood alone: what is tagged !reset is gone, and !override means nothing."""
    content = value.content
    if isinstance(content, dict):
        kept = {name: _without_tags(item) for name, item in content.items() if item.tag != "!reset"}
        return replace(value, content=kept, tag="")
    if isinstance(content, list):
        return replace(value, content=[_without_tags(item) for item in content if item.tag != "!reset"], tag="")
    return replace(value, tag="") if value.tag else value
