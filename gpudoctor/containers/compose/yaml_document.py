"""A YAML document of which every value knows its file and line.

Untyped scalars are read as the reader of Docker Compose v2 does: `yes`, `on` and 1:30 are texts, as in YAML 1.2, where
PyYAML's own rules make them true and 90.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, TypeAlias

from gpudoctor.model.record import record

if TYPE_CHECKING:
    import yaml

MAXIMUM_BYTES = 1 << 18
"""Of a file. PyYAML's own scanner reads 190 kB in a second. That of libyaml is seven times faster, but is not there in
every installation, and 100,000 nested brackets end the process (PyYAML 6.0.3, 2026-11)."""

MAXIMUM_VALUES = 100_000
"""Each use of an alias counts as if it were written out: nine lines of aliases can mean billions of values."""

_DEEPEST = 60

Content: TypeAlias = "str | int | float | bool | datetime.date | list[Value] | dict[str, Value] | None"

_MERGE = "tag:yaml.org,2002:merge"
_STANDARD = "tag:yaml.org,2002:"
_PATTERNS = {
    "null": (r"~|null|Null|NULL|", "~nN"),
    "bool": (r"true|True|TRUE|false|False|FALSE", "tTfF"),
    "int": (r"[-+]?(?:0b[01_]+|0o?[0-7_]+|0x[0-9a-fA-F_]+|[1-9][0-9_]*|0)", "-+0123456789"),
    "float": (
        r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
        "-+0123456789.",
    ),
    "timestamp": (r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt ].*)?", "0123456789"),
    "merge": (r"<<", "<"),
}


@record
class Value:
    """A value and where it stands. tag: "!reset" or "!override", else ""."""

    content: Content
    file: str
    line: int
    tag: str = ""

    def error(self, text: str) -> ValueError:
        """Return an error that names file and line."""
        return ValueError(f"{self.file}: line {self.line}: {text}")

    def with_content(self, content: Content) -> Value:
        """Return another value at this place."""
        return replace(self, content=content)

    def mapping(self) -> dict[str, Value]:
        """Return the values by their key; {} for null.

        Raises:
            ValueError: it is no mapping.
        """
        if self.content is None:
            return {}
        if not isinstance(self.content, dict):
            raise self.error("a mapping is expected")
        return self.content

    def sequence(self) -> list[Value]:
        """Return the values in their order; [] for null.

        Raises:
            ValueError: it is no sequence.
        """
        if self.content is None:
            return []
        if not isinstance(self.content, list):
            raise self.error("a sequence is expected")
        return self.content

    def text(self) -> str:
        """Return a scalar as Compose v2 writes it: true, 3.1 for 3.10, 1 for 1.0; "" for null.

        Raises:
            ValueError: it is a mapping, a sequence or a date.
        """
        content = self.content
        if content is None:
            return ""
        if isinstance(content, str):
            return content
        if isinstance(content, bool):
            return "true" if content else "false"
        if isinstance(content, int):
            return str(content)
        if isinstance(content, float) and math.isfinite(content):
            return str(int(content)) if content.is_integer() and abs(content) < 1e21 else repr(content)
        if isinstance(content, datetime.date):
            raise self.error("a date must stand in quotes here")
        raise self.error("a text or number is expected")

    def integer(self) -> int:
        """Return a whole number, which may be written as text.

        Raises:
            ValueError: it is none.
        """
        if isinstance(self.content, int) and not isinstance(self.content, bool):
            return self.content
        if isinstance(self.content, str) and re.fullmatch(r"[-+]?[0-9]{1,18}", self.content.strip()):
            return int(self.content)
        raise self.error("a whole number is expected")

    def boolean(self) -> bool:
        """Return true or false, which may be written as text.

        Raises:
            ValueError: it is neither.
        """
        word = self.text().lower()
        if word in ("true", "yes", "y", "on", "1"):
            return True
        if word in ("false", "no", "n", "off", "0"):
            return False
        raise self.error("true or false is expected")


def parse_yaml(text: bytes, file: str) -> Value:
    """Return the one document in `text`.

    file: for the errors.

    Raises:
        ValueError: it is no YAML, too large, or holds a key twice or a tag that is not understood; the message names
            file and line.
    """
    import yaml

    if len(text) > MAXIMUM_BYTES:
        raise ValueError(f"{file}: larger than {MAXIMUM_BYTES:,} bytes")
    try:
        node = yaml.compose(text, Loader=_loader())
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"line {mark.line + 1}: " if mark else ""
        raise ValueError(f"{file}: {place}{error.problem or error.context}"[:500]) from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ValueError(f"{file}: {error}"[:500]) from None
    except RecursionError:
        raise ValueError(f"{file}: nested too deep") from None
    return Value(content=None, file=file, line=1) if node is None else _Reader(file).value(node, 0)


@cache
def _loader() -> type[yaml.SafeLoader]:
    """Return a loader that resolves scalars by `_PATTERNS` alone."""
    import yaml

    class Loader(yaml.SafeLoader):
        yaml_implicit_resolvers = {}  # noqa: RUF012 - the name and form are PyYAML's

    for name, (pattern, first) in _PATTERNS.items():
        letters = ["", *first] if name == "null" else list(first)
        Loader.add_implicit_resolver(_STANDARD + name, re.compile(f"(?:{pattern})$"), letters)
    return Loader


class _Reader:
    """Makes values of PyYAML's nodes, and counts them."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._count = 0

    def value(self, node: yaml.Node, depth: int) -> Value:
        import yaml

        place = Value(content=None, file=self._file, line=node.start_mark.line + 1, tag=self._tag(node))
        self._count += 1
        if self._count > MAXIMUM_VALUES:
            raise place.error(f"more than {MAXIMUM_VALUES:,} values, with aliases written out")
        if depth > _DEEPEST:
            raise place.error("nested too deep")
        if isinstance(node, yaml.MappingNode):
            return place.with_content(self._mapping(node, depth))
        if isinstance(node, yaml.SequenceNode):
            return place.with_content([self.value(item, depth + 1) for item in node.value])
        assert isinstance(node, yaml.ScalarNode)
        return place.with_content(_scalar(node, place))

    def _tag(self, node: yaml.Node) -> str:
        if node.tag in ("!reset", "!override"):
            return str(node.tag)
        if not node.tag.startswith(_STANDARD):
            raise ValueError(
                f"{self._file}: line {node.start_mark.line + 1}: the tag {node.tag[:40]!r} is not understood"
            )
        return ""

    def _mapping(self, node: yaml.MappingNode, depth: int) -> dict[str, Value]:
        """Return its own entries, and those of its merge keys (`<<`) that it has not itself."""
        own: dict[str, Value] = {}
        merged: dict[str, Value] = {}
        for key_node, value_node in node.value:
            if key_node.tag == _MERGE:
                for key, value in self._merged(value_node, depth):
                    merged.setdefault(key, value)
                continue
            key_value = self.value(key_node, depth + 1)
            key = key_value.text()
            if key in own:
                raise key_value.error(f"the key {key[:80]!r} is there twice")
            own[key] = self.value(value_node, depth + 1)
        return {**merged, **own}

    def _merged(self, node: yaml.Node, depth: int) -> Iterator[tuple[str, Value]]:
        """Yield the entries that a merge key takes over, the first source first."""
        source = self.value(node, depth + 1)
        mappings = source.content if isinstance(source.content, list) else [source]
        for mapping in mappings:
            yield from mapping.mapping().items()


def _scalar(node: yaml.ScalarNode, place: Value) -> Content:
    text = str(node.value)
    kind = _untagged_kind(node, text) if place.tag else node.tag.removeprefix(_STANDARD)
    try:
        if kind == "null":
            return None
        if kind == "bool":
            return text.lower() == "true"
        if kind == "int":
            return _integer(text)
        if kind == "float":
            return float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))
        if kind == "timestamp":
            return datetime.date.fromisoformat(text[:10])
    except ValueError:
        raise place.error(f"{text[:40]!r} is no {kind}") from None
    if kind in ("str", "merge"):
        return text
    raise place.error(f"the tag {kind!r} is not understood")


def _untagged_kind(node: yaml.ScalarNode, text: str) -> str:
    """Return the kind that a scalar with a tag of compose would have without it: a quoted one is a text."""
    if node.style is not None:
        return "str"
    return next((name for name, (pattern, _) in _PATTERNS.items() if re.fullmatch(pattern, text)), "str")


def _integer(text: str) -> int:
    """Return the number; a leading zero makes it octal, as in C."""
    digits = text.replace("_", "")
    if len(digits) > 100:
        raise ValueError
    if re.fullmatch(r"[-+]?0[0-7]+", digits):
        return int(digits, 8)
    return int(digits, 0)
