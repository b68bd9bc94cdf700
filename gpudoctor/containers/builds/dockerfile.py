"""A Dockerfile, text → instructions.

Source: https://docs.docker.com/reference/dockerfile/ ; if it is silent, what BuildKit's own parser does.
"""

import json
import re
from collections.abc import Iterator, Mapping

from gpudoctor.model.record import record

MAXIMUM_CHARACTERS = 1 << 20
"""A longer Dockerfile is refused: BuildKit's own limit for one is about the same."""

MAXIMUM_LINE_BYTES = 65_535
"""BuildKit reads no longer line either."""

_DIRECTIVE = re.compile(r"#\s*(syntax|escape|check)\s*=\s*(.+?)\s*$", re.IGNORECASE)
_QUOTED = r"""\\.|'[^']*'|"(?:\\.|[^"\\])*\""""
_PART = re.compile(_QUOTED, re.DOTALL)
_FLAG = re.compile(rf"--(?:{_QUOTED}|[^\s\\'\"])*", re.DOTALL)
_SHELL_WORD = re.compile(rf"(?:\d*<<-?[ \t]*)?(?:{_QUOTED}|[^\s\\'\"])+", re.DOTALL)
_HEREDOC = re.compile(r"\d{0,9}<<(-?)\s*([^<]*)", re.DOTALL)
_WITH_HEREDOCS = ("ADD", "COPY", "RUN")
_MOUNT_FIELDS = {"src": "source", "dst": "target", "destination": "target"}
_MAYBE_JSON = ("ADD", "CMD", "COPY", "ENTRYPOINT", "HEALTHCHECK", "RUN", "SHELL", "VOLUME")


@record
class Heredoc:
    """A file that is in the Dockerfile itself."""

    name: str
    content: str
    expands: bool = True
    """Variables in it are replaced: its delimiter was not quoted."""


@record
class Instruction:
    """One instruction as it is written; nothing is expanded.

    line: number of its first line, from 1.
    text: the whole of it in one line, without its here-documents.
    rest: what follows the name and the flags.
    words: `rest` in words, or the strings of its JSON form.
    flags: "chown" → "1000:1000"; "" for a flag without a value. A flag given more than once keeps every value.
    onbuild: it is behind ONBUILD, and runs in a build that starts from this image.
    """

    name: str
    line: int
    text: str
    rest: str = ""
    words: tuple[str, ...] = ()
    flags: tuple[tuple[str, str], ...] = ()
    is_json: bool = False
    heredocs: tuple[Heredoc, ...] = ()
    onbuild: bool = False

    def flag(self, name: str) -> str | None:
        """Return the last value of the flag, None if it is not given."""
        return dict(self.flags).get(name)


@record
class Dockerfile:
    """The instructions of a Dockerfile, and the character that continues a line."""

    instructions: tuple[Instruction, ...]
    escape: str = "\\"


def parse_dockerfile(text: str) -> Dockerfile:
    """Return the instructions of `text`. Raises ValueError: it is not a Dockerfile; the message names the line."""
    if len(text) > MAXIMUM_CHARACTERS:
        raise ValueError(f"longer than {MAXIMUM_CHARACTERS:,} characters")
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")
    too_long = next(
        (n for n, line in enumerate(lines, 1) if len(line.encode(errors="replace")) > MAXIMUM_LINE_BYTES), 0
    )
    if too_long:
        raise ValueError(f"line {too_long}: longer than {MAXIMUM_LINE_BYTES:,} bytes")
    escape = _directives(lines).get("escape", "\\")
    if escape not in ("\\", "`"):
        raise ValueError(f"line 1: escape={escape!r}, which must be \\ or `")
    instructions = []
    index = 0
    while index < len(lines):
        logical, after = _logical_line(lines, index, escape)
        if logical:
            instruction, after = _instruction(logical, lines, index, after)
            instructions.append(instruction)
        index = after
    if not any(instruction.name == "FROM" for instruction in instructions):
        raise ValueError("it has no FROM")
    return Dockerfile(instructions=tuple(instructions), escape=escape)


def _directives(lines: list[str]) -> dict[str, str]:
    """Return the parser directives: comments of the form `# name=value` before anything else."""
    found: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        match = _DIRECTIVE.match(line.strip())
        if match is None:
            break
        if match[1].lower() in found:
            raise ValueError(f"line {number}: {match[1]}= is set twice")
        found[match[1].lower()] = match[2]
    return found


def _logical_line(lines: list[str], start: int, escape: str) -> tuple[str, int]:
    """Return the line that begins at `start` with its continuations, and the index after it.

    Comments and empty lines inside a continued line are left out. An escape character behind another one continues
    no line.
    """
    parts: list[str] = []
    index = start
    while index < len(lines):
        line = lines[index]
        index += 1
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            if parts:
                continue
            return "", index
        shortened = line.rstrip(" \t")
        if not shortened.endswith(escape) or shortened.endswith(escape * 2):
            parts.append(line)
            break
        parts.append(shortened[:-1])
    return "".join(parts).strip(), index


def _instruction(logical: str, lines: list[str], index: int, after: int) -> tuple[Instruction, int]:
    """Return the instruction of the logical line, and the index after its here-documents."""
    name, rest = _first_word(logical)
    onbuild = name.upper() == "ONBUILD"
    if onbuild:
        name, rest = _first_word(rest)
    name = name.upper()
    if not name.isalpha():
        raise ValueError(f"line {index + 1}: {name[:40]!r} is not an instruction")
    flags, rest = _split_flags(rest)
    words = _json_words(_first_word(rest)[1] if name == "HEALTHCHECK" else rest, index) if name in _MAYBE_JSON else None
    heredocs: tuple[Heredoc, ...] = ()
    if name in _WITH_HEREDOCS and words is None:
        heredocs, after = _heredocs(rest, lines, after)
    if words is not None and name == "HEALTHCHECK":
        words = (_first_word(rest)[0], *words)
    return (
        Instruction(
            name=name,
            line=index + 1,
            text=" ".join(logical.split()),
            rest=rest,
            words=tuple(rest.split()) if words is None else words,
            flags=flags,
            is_json=words is not None,
            heredocs=heredocs,
            onbuild=onbuild,
        ),
        after,
    )


def _first_word(text: str) -> tuple[str, str]:
    """Return the first word, and what follows the white space after it."""
    word, *rest = text.split(maxsplit=1) or [""]
    return word, rest[0] if rest else ""


def _split_flags(rest: str) -> tuple[tuple[tuple[str, str], ...], str]:
    """Return the flags before the arguments, without their quotes, and the arguments. `--` alone ends the flags."""
    flags = []
    while match := _FLAG.match(rest):
        rest = rest[match.end() :].lstrip()
        if match[0] == "--":
            break
        name, _, value = _without_quotes(match[0][2:]).partition("=")
        flags.append((name, value))
    return tuple(flags), rest


def _without_quotes(word: str) -> str:
    """Return the word without its quotes, and without the backslash in front of another character."""

    def plain(part: re.Match[str]) -> str:
        if part[0].startswith("\\"):
            return part[0][1:]
        inside = part[0][1:-1]
        return inside if part[0].startswith("'") else re.sub(r"\\(.)", r"\1", inside, flags=re.DOTALL)

    return _PART.sub(plain, word)


def _json_words(rest: str, index: int) -> tuple[str, ...] | None:
    """Return the strings of the JSON form; None if it is the shell form, as anything that is not a list."""
    if not rest.startswith("["):
        return None
    try:
        words = json.loads(rest, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    if not all(isinstance(word, str) for word in words):
        raise ValueError(f"line {index + 1}: the JSON list of an instruction may contain only strings")
    return tuple(words)


def _refuse(constant: str) -> None:
    """Refuse NaN and Infinity, which Python reads and JSON has not."""
    raise ValueError(constant)


def _heredocs(rest: str, lines: list[str], start: int) -> tuple[tuple[Heredoc, ...], int]:
    """Return the here-documents that `rest` opens, and the index after the last one."""
    heredocs = []
    index = start
    for match in map(_HEREDOC.fullmatch, _SHELL_WORD.findall(rest) if "<<" in rest else ()):
        if match is None or not match[2]:
            continue
        strips_tabs, written = match.groups()
        name = _without_quotes(written)
        content: list[str] = []
        while index < len(lines):
            line = lines[index].lstrip("\t") if strips_tabs else lines[index]
            index += 1
            if line == name:
                break
            content.append(f"{line}\n")
        else:
            raise ValueError(f"line {start}: the here-document {name} is not closed")
        is_quoted = any(part[0] != "\\" for part in _PART.findall(written))
        heredocs.append(Heredoc(name=name, content="".join(content), expands=not is_quoted))
    return tuple(heredocs), index


def context_mounts(instruction: Instruction) -> Iterator[Mapping[str, str]]:
    """Yield the fields of each --mount of the build context, for a RUN: `source`, if it says one, and `target`.

    Only what the RUN makes of these files is in the image.
    Source: https://docs.docker.com/reference/dockerfile/#run---mounttypebind
    """
    for name, value in instruction.flags:
        fields = dict(_field(field) for field in value.split(",")) if name == "mount" else {}
        if fields and fields.get("type", "bind") == "bind" and not fields.get("from"):
            yield fields


def _field(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    return _MOUNT_FIELDS.get(name, name), value.strip("'\"")
