"""A Dockerfile, text → instructions.

Source: https://docs.docker.com/reference/dockerfile/ ; where it is silent, what BuildKit's own parser does.
"""

from __future__ import annotations

import json
import re

from gpudoctor.model.record import record

MAXIMUM_CHARACTERS = 1 << 20
"""A longer Dockerfile is refused: BuildKit's own limit for one is about the same."""

_DIRECTIVE = re.compile(r"#\s*([A-Za-z][A-Za-z0-9]*)\s*=\s*(.*?)\s*$")
_HEREDOC = re.compile(r"<<(-?)(['\"]?)([A-Za-z_][A-Za-z0-9_.-]*)\2$")
_FLAG = re.compile(r"--([a-z-]+)(?:=(.*))?$")
_WITH_HEREDOCS = ("ADD", "COPY", "RUN")


@record
class Heredoc:
    """A file that stands in the Dockerfile itself."""

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
    onbuild: it stands behind ONBUILD, and runs in a build that starts from this image.
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
        """Return the last value of the flag, None where it is not given."""
        return dict(self.flags).get(name)


@record
class Dockerfile:
    """The instructions of a Dockerfile, and the character that continues a line."""

    instructions: tuple[Instruction, ...]
    escape: str = "\\"


def parse_dockerfile(text: str) -> Dockerfile:
    """Return the instructions of `text`.

    Raises:
        ValueError: it is no Dockerfile; the message names the line.
    """
    if len(text) > MAXIMUM_CHARACTERS:
        raise ValueError(f"longer than {MAXIMUM_CHARACTERS:,} characters")
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")
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
        raise ValueError("no FROM in it")
    return Dockerfile(instructions=tuple(instructions), escape=escape)


def _directives(lines: list[str]) -> dict[str, str]:
    """Return the parser directives: comments of the form `# name=value` before anything else."""
    found: dict[str, str] = {}
    for line in lines:
        match = _DIRECTIVE.match(line.strip())
        if match is None or match[1].lower() in found:
            break
        found[match[1].lower()] = match[2]
    return found


def _logical_line(lines: list[str], start: int, escape: str) -> tuple[str, int]:
    """Return the line that begins at `start` with its continuations, and the index after it.

    Comments and empty lines inside a continued line are left out.
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
        if not shortened.endswith(escape):
            parts.append(line)
            break
        parts.append(shortened[:-1])
    return "".join(parts).strip(), index


def _instruction(logical: str, lines: list[str], index: int, after: int) -> tuple[Instruction, int]:
    """Return the instruction of the logical line, and the index after its here-documents."""
    name, _, rest = logical.partition(" ") if " " in logical else logical.partition("\t")
    onbuild = name.upper() == "ONBUILD"
    if onbuild:
        name, _, rest = rest.strip().partition(" ")
    name = name.upper()
    if not name.isalpha():
        raise ValueError(f"line {index + 1}: {name[:40]!r} is no instruction")
    flags, rest = _split_flags(rest.strip())
    heredocs: tuple[Heredoc, ...] = ()
    if name in _WITH_HEREDOCS and "<<" in rest:
        heredocs, after = _heredocs(rest, lines, after)
    words = _json_words(rest)
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


def _split_flags(rest: str) -> tuple[tuple[tuple[str, str], ...], str]:
    """Return the flags before the arguments, and the arguments."""
    flags = []
    while rest.startswith("--"):
        word, _, others = rest.partition(" ")
        match = _FLAG.match(word)
        if match is None:
            break
        flags.append((match[1], match[2] or ""))
        rest = others.lstrip()
    return tuple(flags), rest


def _json_words(rest: str) -> tuple[str, ...] | None:
    """Return the strings of the JSON form; None where it is the shell form, as anything that is no list of strings."""
    if not rest.startswith("["):
        return None
    try:
        words = json.loads(rest)
    except (ValueError, RecursionError):
        return None
    return tuple(words) if isinstance(words, list) and all(isinstance(word, str) for word in words) else None


def _heredocs(rest: str, lines: list[str], start: int) -> tuple[tuple[Heredoc, ...], int]:
    """Return the here-documents that `rest` opens, and the index after the last one.

    Raises:
        ValueError: one is not closed.
    """
    heredocs = []
    index = start
    for word in rest.split():
        match = _HEREDOC.match(word.lstrip("0123456789"))
        if match is None:
            continue
        strips_tabs, quote, name = match.groups()
        content: list[str] = []
        while index < len(lines):
            line = lines[index].lstrip("\t") if strips_tabs else lines[index]
            index += 1
            if line == name:
                break
            content.append(f"{line}\n")
        else:
            raise ValueError(f"line {start}: the here-document {name} is not closed")
        heredocs.append(Heredoc(name=name, content="".join(content), expands=not quote))
    return tuple(heredocs), index
