"""A file of environment variables: `.env` beside a compose file, or what `env_file` names.

Source: https://docs.docker.com/compose/how-tos/environment-variables/variable-interpolation/#env-file-syntax
"""

import re
from collections import ChainMap
from collections.abc import Mapping
from pathlib import Path

from gpudoctor.containers.bounded_files import read_bounded
from gpudoctor.containers.compose.interpolation import Interpolation

MAXIMUM_BYTES = 1 << 18

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
