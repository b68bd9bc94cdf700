"""YAML as plain values. Untyped scalars are read as Docker Compose v2 reads them.

`yes`, `on` and 1:30 are texts, as in YAML 1.2; PyYAML's own rules make them true and 90.
"""

import re
from collections import Counter
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import yaml

MAXIMUM_BYTES = 1 << 18
"""Of a file. PyYAML's own scanner reads 190 kB in a second. That of libyaml is seven times faster, but is not there in
every installation, and 100,000 nested brackets end the process (PyYAML 6.0.3, 2026-11)."""

MAXIMUM_VALUES = 100_000
"""Each use of an alias counts as if it were written out: nine lines of aliases can mean billions of values."""

_STANDARD = "tag:yaml.org,2002:"
_KINDS = {
    "null": (r"~|null|Null|NULL|", ["", "~", "n", "N"]),
    "bool": (r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    "int": (r"[-+]?(?:0o?[0-7_]+|0x[0-9a-fA-F_]+|[1-9][0-9_]{0,99}|0)", list("-+0123456789")),
    "float": (r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]{1,3})?", list("-+0123456789.")),
    "merge": (r"<<", ["<"]),
}
_TAGS = tuple(_STANDARD + kind for kind in ("null", "bool", "int", "float", "merge", "str", "seq", "map"))


def parse_yaml(text: bytes, file: str) -> Any:
    """Return the one document in `text` as dicts, whose keys are texts, lists and scalars.

    file: for the errors.

    Raises:
        ValueError: it is not YAML, too large, or contains a tag; the message names file and line.
    """
    import yaml

    if len(text) > MAXIMUM_BYTES:
        raise ValueError(f"{file}: larger than {MAXIMUM_BYTES:,} bytes")
    try:
        loader = _loader()(text)
        node = loader.get_single_node()
        if node is None:
            return None
        _count(node, {})
        return loader.construct_document(node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"line {mark.line + 1}: " if mark else ""
        raise ValueError(f"{file}: {place}{error.problem or error.context}"[:500]) from None
    except (yaml.YAMLError, ValueError) as error:
        raise ValueError(f"{file}: {error}"[:500]) from None
    except RecursionError:
        raise ValueError(f"{file}: nested too deep") from None


def _count(node: "yaml.Node", known: dict[int, int]) -> int:
    """Return for how many values the node stands; raise ValueError if they are too many, or it is not understood.

    known: by the id of a node, as several aliases lead to one.
    """
    if id(node) in known:
        return known[id(node)]
    line = f"line {node.start_mark.line + 1}"
    if node.tag not in _TAGS:
        raise ValueError(f"{line}: the tag {node.tag.removeprefix(_STANDARD)[:40]!r} is not supported")
    parts = node.value if isinstance(node.value, list) else ()
    keys = Counter(
        str(part[0].value) for part in parts if isinstance(part, tuple) and part[0].tag != f"{_STANDARD}merge"
    )
    if twice := next((name for name, times in keys.items() if times > 1), ""):
        raise ValueError(f"{line}: the key {twice[:80]!r} is duplicated")
    inner = (item for part in parts for item in (part if isinstance(part, tuple) else (part,)))
    known[id(node)] = 1 + sum(_count(item, known) for item in inner)
    if known[id(node)] > MAXIMUM_VALUES:
        raise ValueError(f"{line}: more than {MAXIMUM_VALUES:,} values, with aliases written out")
    return known[id(node)]


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
def _loader() -> "type[yaml.SafeLoader]":
    """Return a loader that resolves scalars by `_KINDS` alone, and makes keys texts."""
    import yaml

    class Loader(yaml.SafeLoader):
        yaml_implicit_resolvers = {}  # noqa: RUF012 - the name and form are PyYAML's

        def construct_mapping(self, node: "yaml.MappingNode", deep: bool = False) -> dict[str, Any]:  # type: ignore[override]
            return {text_of(name): value for name, value in super().construct_mapping(node, deep).items()}

    for name, (pattern, first) in _KINDS.items():
        Loader.add_implicit_resolver(_STANDARD + name, re.compile(f"(?:{pattern})$"), first)
    return Loader
