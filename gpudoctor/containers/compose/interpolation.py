"""Variables in the values of a compose file: $NAME, ${NAME:-default}, ${NAME:+other}, ${NAME:?text}; `$$` is a dollar.

And files of variables: `.env` beside a compose file, or what `env_file` names.
A Dockerfile's words are another language (expansion.py): they have quotes and escapes, and `$$` is nothing special.
Source: https://docs.docker.com/reference/compose-file/interpolation/ ; for the files
https://docs.docker.com/compose/how-tos/environment-variables/variable-interpolation/#env-file-syntax
"""

import re
from collections import ChainMap
from collections.abc import Mapping
from pathlib import Path

from gpudoctor.containers.bounded_files import read_bounded

MAXIMUM_CHARACTERS = 4 << 20
"""Of all results together: short texts that name long variables could fill the memory."""

_DEEPEST = 20
"""Defaults may hold variables with defaults: ${A:-${B:-c}}; a deeper text is hostile."""

_NAME = "[A-Za-z_][A-Za-z0-9_]*"
_VARIABLE = re.compile(rf"\$(?:(?P<dollar>\$)|(?P<plain>{_NAME})|\{{(?P<braced>{_NAME})(?P<operator>\}}|:?[-+?]))")
_BRACE = re.compile(r"\$\{|\}")

MAXIMUM_BYTES = 1 << 18
"""Of a file of variables."""

_STATEMENT = re.compile(
    r"(?:export[ \t]+)?(?P<name>[A-Za-z_][A-Za-z0-9_.\[\]-]*)[ \t]*(?P<separator>[=:]|(?=\n))[ \t]*"
)
_SKIPPED = re.compile(r"(?:\s+|#[^\n]*)+")
_QUOTED = re.compile(r"'(?P<literal>(?:[^'\\]|\\.)*)'|\"(?P<escaped>(?:[^\"\\]|\\.)*)\"", re.DOTALL)
_AFTER_QUOTE = re.compile(r"[ \t]*(?:#[^\n]*)?(?=\n)")
_COMMENT = re.compile(r"[ \t]#")
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\", "$": "$$"}
"""What stands for a character behind a backslash; the dollar stays one, for variables are replaced afterwards."""


class Interpolation:
    """Replaces the variables in any number of texts. An unset variable is empty.

    variables: may grow between two texts.
    """

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._variables = variables
        self._remaining = MAXIMUM_CHARACTERS

    def apply(self, text: str) -> str:
        """Return `text` with its variables replaced.

        Raises:
            ValueError: a variable is written in no known form, or is required and not set.
        """
        return self._apply(text, 0)

    def _apply(self, text: str, depth: int) -> str:
        if depth > _DEEPEST:
            raise ValueError("variables nested too deep")
        parts: list[str] = []
        at = 0
        while (dollar := text.find("$", at)) >= 0:
            parts.append(text[at:dollar])
            value, at = self._variable(text, dollar, depth)
            self._remaining -= len(value)
            if self._remaining < 0:
                raise ValueError(f"its variables make more than {MAXIMUM_CHARACTERS:,} characters")
            parts.append(value)
        parts.append(text[at:])
        return "".join(parts)

    def _variable(self, text: str, start: int, depth: int) -> tuple[str, int]:
        """Return the value of the variable that begins at `start`, and the index after it."""
        match = _VARIABLE.match(text, start)
        if match is None:
            raise ValueError(f"{text[start : start + 40]!r} is no variable (a plain dollar is written $$)")
        if match["dollar"]:
            return "$", match.end()
        name, operator = match["plain"] or match["braced"], match["operator"]
        if operator in (None, "}"):
            return self._variables.get(name, ""), match.end()
        end = _closing_brace(text, match.end())
        return self._with_operator(name, operator, text[match.end() : end], depth), end + 1

    def _with_operator(self, name: str, operator: str, argument: str, depth: int) -> str:
        value = self._variables.get(name)
        is_set = bool(value) if operator.startswith(":") else value is not None
        if operator.endswith("+"):
            return self._apply(argument, depth + 1) if is_set else ""
        if is_set:
            return value or ""
        if operator.endswith("-"):
            return self._apply(argument, depth + 1)
        raise ValueError(f"the variable {name} is required: {self._apply(argument, depth + 1)[:80]}")


def _closing_brace(text: str, start: int) -> int:
    depth = 1
    for match in _BRACE.finditer(text, start):
        depth += 1 if match[0] == "${" else -1
        if not depth:
            return match.start()
    raise ValueError(f"a brace is not closed in {text[:80]!r}")


def read_env_file(path: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that a file sets.

    environ: its variables win over those that stand earlier in the file where a value names one.

    Raises:
        ValueError: the file is wrong or too large; the message names file and line.
    """
    data = read_bounded(path, MAXIMUM_BYTES)
    try:
        text = data.decode("utf-8-sig").replace("\r\n", "\n") + "\n"
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: {error}") from None
    found: dict[str, str] = {}
    interpolation = Interpolation(ChainMap(dict(environ), found))
    at = 0
    while at < len(text):
        skipped = _SKIPPED.match(text, at)
        if skipped is not None:
            at = skipped.end()
            continue
        try:
            at = _statement(text, at, environ, found, interpolation)
        except ValueError as error:
            raise ValueError(f"{path}: line {text.count(chr(10), 0, at) + 1}: {error}") from None
    return found


def _statement(
    text: str, at: int, environ: Mapping[str, str], found: dict[str, str], interpolation: Interpolation
) -> int:
    """Put the variable of the statement at `at` into `found`; return the index after it."""
    match = _STATEMENT.match(text, at)
    if match is None:
        raise ValueError("NAME=value is expected")
    if match["separator"]:
        found[match["name"]], after = _value(text, match.end(), interpolation)
        return after
    if match["name"] in environ:  # a name alone takes over the value that is set already
        found[match["name"]] = environ[match["name"]]
    return match.end()


def _value(text: str, at: int, interpolation: Interpolation) -> tuple[str, int]:
    if text[at] in "'\"":
        return _quoted(text, at, interpolation)
    end = text.index("\n", at)
    line = text[at:end]
    comment = _COMMENT.search(line)
    return interpolation.apply((line[: comment.start()] if comment else line).rstrip()), end


def _quoted(text: str, at: int, interpolation: Interpolation) -> tuple[str, int]:
    match = _QUOTED.match(text, at)
    after = match and _AFTER_QUOTE.match(text, match.end())
    if match is None or after is None:
        raise ValueError("a quote is not closed, or text follows it")
    if match["literal"] is not None:
        return match["literal"].replace("\\'", "'"), after.end()
    unescaped = _ESCAPE.sub(lambda escape: _ESCAPED.get(escape[1], escape[0]), match["escaped"])
    return interpolation.apply(unescaped), after.end()
