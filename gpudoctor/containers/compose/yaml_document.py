"""YAML as plain values. Untyped scalars are read as Docker Compose v2 reads them.

`yes`, `on` and 1:30 are texts, as in YAML 1.2; PyYAML's own rules make them true and 90.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import yaml

MAXIMUM_BYTES = 1 << 18
"""Of a file. PyYAML's own scanner reads 190 kB in a second. That of libyaml is seven times faster, but is not there in
every installation, and 100,000 nested brackets end the process (PyYAML 6.0.3, 2026-11)."""

MAXIMUM_VALUES = 100_000
"""Each use of an alias counts as if it were written out: nine lines of aliases can mean billions of values."""

_DEEPEST = 60

_STANDARD = "tag:yaml.org,2002:"
_KINDS = {
    "null": (r"~|null|Null|NULL|", ["", "~", "n", "N"]),
    "bool": (r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    "int": (r"[-+]?(?:0o?[0-7_]+|0x[0-9a-fA-F_]+|[1-9][0-9_]{0,99}|0)", list("-+0123456789")),
    "float": (r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]{1,3})?", list("-+0123456789.")),
    "merge": (r"<<", ["<"]),
}


def parse_yaml(text: bytes, file: str) -> Any:
    """Return the one document in `text` as dicts, lists and scalars.

    file: for the errors.

    Raises:
        ValueError: it is no YAML, too large, or holds a tag; the message names file and line.
    """
    import yaml

    if len(text) > MAXIMUM_BYTES:
        raise ValueError(f"{file}: larger than {MAXIMUM_BYTES:,} bytes")
    try:
        node = yaml.compose(text, Loader=_loader())
        return None if node is None else _Reader().value(node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"line {mark.line + 1}: " if mark else ""
        raise ValueError(f"{file}: {place}{error.problem or error.context}"[:500]) from None
    except (yaml.YAMLError, ValueError) as error:
        raise ValueError(f"{file}: {error}"[:500]) from None
    except RecursionError:
        raise ValueError(f"{file}: nested too deep") from None


def map_texts(value: Any, change: Callable[[str], str]) -> Any:
    """Return the value with each text in it, but not the keys, changed."""
    if isinstance(value, dict):
        return {name: map_texts(item, change) for name, item in value.items()}
    if isinstance(value, list):
        return [map_texts(item, change) for item in value]
    return change(value) if isinstance(value, str) else value


def text_of(value: Any) -> str:
    """Return a scalar as Compose v2 writes it: true, 3.1 for 3.10, 1 for 1.0; "" for null.

    Raises:
        ValueError: it is a mapping or a sequence.
    """
    if isinstance(value, dict | list):
        raise ValueError("a text or number is expected")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e21:
        return str(int(value))
    return "" if value is None else str(value)


@cache
def _loader() -> type[yaml.SafeLoader]:
    """Return a loader that resolves scalars by `_KINDS` alone."""
    import yaml

    class Loader(yaml.SafeLoader):
        yaml_implicit_resolvers = {}  # noqa: RUF012 - the name and form are PyYAML's

    for name, (pattern, first) in _KINDS.items():
        Loader.add_implicit_resolver(_STANDARD + name, re.compile(f"(?:{pattern})$"), first)
    return Loader


class _Reader:
    """Makes values of PyYAML's nodes, and counts them."""

    def __init__(self) -> None:
        self._count = 0

    def value(self, node: yaml.Node, depth: int = 0) -> Any:
        import yaml

        self._count += 1
        if self._count > MAXIMUM_VALUES:
            raise _error(node, f"more than {MAXIMUM_VALUES:,} values, with aliases written out")
        if depth > _DEEPEST:
            raise _error(node, "nested too deep")
        if not node.tag.startswith(_STANDARD):
            raise _error(node, f"the tag {node.tag[:40]!r} is not understood here")
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, depth + 1)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, depth + 1) for item in node.value]
        return _scalar(node)

    def _mapping(self, node: yaml.MappingNode, depth: int) -> dict[str, Any]:
        """Return its own entries, and those of its merge keys (`<<`) that it has not itself."""
        own: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        for key, value in node.value:
            if key.tag == f"{_STANDARD}merge":
                merged = {
                    **{name: item for found in self._merged(value, depth) for name, item in found.items()},
                    **merged,
                }
            else:
                name = text_of(self.value(key, depth))
                if name in own:
                    raise _error(key, f"the key {name[:80]!r} is there twice")
                own[name] = self.value(value, depth)
        return {**merged, **own}

    def _merged(self, node: yaml.Node, depth: int) -> Iterator[dict[str, Any]]:
        """Yield the mappings that a merge key takes over, the one that wins last."""
        source = self.value(node, depth)
        for found in reversed(source if isinstance(source, list) else [source]):
            if not isinstance(found, dict):
                raise _error(node, "a mapping is expected")
            yield found


def _error(node: yaml.Node, text: str) -> ValueError:
    return ValueError(f"line {node.start_mark.line + 1}: {text}")


def _scalar(node: yaml.Node) -> str | int | float | bool | None:
    text, kind = str(node.value), node.tag.removeprefix(_STANDARD)
    if kind == "null":
        return None
    if kind == "bool":
        return text.lower() == "true"
    if kind == "int":
        return _integer(text)
    if kind == "float":
        return float(text)
    if kind in ("str", "merge"):
        return text
    raise _error(node, f"the tag {kind!r} is not understood here")


def _integer(text: str) -> int:
    """Return the number; a leading zero makes it octal, as in C."""
    digits = text.replace("_", "")
    return int(digits, 8) if re.fullmatch(r"[-+]?0[0-7]+", digits) else int(digits, 0)
