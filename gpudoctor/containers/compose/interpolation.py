"""Variables in the values of a compose file: $NAME, ${NAME:-default}, ${NAME:+other}, ${NAME:?text}; `$$` is a dollar.

And files of variables: `.env` next to a compose file, or what `env_file` names.
Source: https://docs.docker.com/reference/compose-file/interpolation/ ; for the files
https://docs.docker.com/compose/how-tos/environment-variables/variable-interpolation/#env-file-syntax
"""

import re
from collections import ChainMap
from collections.abc import Mapping
from pathlib import Path

from gpudoctor.containers.builds.expansion import expand
from gpudoctor.files import read_bounded

MAXIMUM_CHARACTERS = 4 << 20
"""Of all results together: short texts that name long variables could fill the memory."""

MAXIMUM_BYTES = 1 << 18
"""Of a file of variables."""

_DOLLAR = "\0"  # replaces $$ while variables are replaced: no YAML and no environment has it
_NO_VARIABLE = re.compile(r"\$(?!\{?[A-Za-z_])")
_SKIPPED = re.compile(r"(?:\s+|#[^\n]*)*")
_STATEMENT = re.compile(
    r"""(?:export[ \t]+)?(?P<name>[A-Za-z_][\w.\[\]-]{0,1000})[ \t]*(?:(?P<separator>[=:])[ \t]*(?:"""
    r"""(?:'(?P<literal>(?:[^'\\]|\\.)*)'|"(?P<escaped>(?:[^"\\]|\\.)*)")[ \t]*(?:\#[^\n]*)?"""
    r"""|(?P<plain>(?!['"])[^\n]*)))?(?=\n)""",
    re.DOTALL,
)
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\", "$": "$$"}
"""What a character behind a backslash means; the dollar stays one, because variables are replaced afterwards."""


class Interpolation:
    """Replaces variables in texts. An unset variable is empty.

    variables: may grow between two texts.
    """

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._variables = variables
        self._remaining = MAXIMUM_CHARACTERS

    def apply(self, text: str) -> str:
        """Return `text` with its variables replaced, as in a Dockerfile but for quotes and escapes.

        Raises:
            ValueError: a variable is written in no known form, or is required and not set.
        """
        plain = text.replace("$$", _DOLLAR)
        if wrong := _NO_VARIABLE.search(plain):
            raise ValueError(f"{plain[wrong.start() :][:40]!r} is not a variable (a plain dollar is written $$)")
        value = expand(plain, self._variables, "", keep_quotes=True).replace(_DOLLAR, "$")
        self._remaining -= len(value) if "$" in text else 0
        if self._remaining < 0:
            raise ValueError(f"its variables expand to more than {MAXIMUM_CHARACTERS:,} characters")
        return value


def read_env_file(path: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that a file sets.

    environ: its variables win over those earlier in the file if a value names one.

    Raises:
        ValueError: the file is wrong or too large; the message names file and line.
    """
    data = read_bounded(path, MAXIMUM_BYTES)
    found: dict[str, str] = {}
    interpolation = Interpolation(ChainMap(dict(environ), found))
    text, at = "", 0
    try:
        text = data.decode("utf-8-sig").replace("\r\n", "\n") + "\n"
        while (skipped := _SKIPPED.match(text, at)) and (at := skipped.end()) < len(text):
            match = _STATEMENT.match(text, at)
            if match is None:
                raise ValueError("NAME=value is expected, or a quote is not closed, or text follows it")
            if match["separator"]:
                found[match["name"]] = _value(match, interpolation)
            elif match["name"] in environ:  # a name alone takes over the value that is set already
                found[match["name"]] = environ[match["name"]]
            at = match.end()
    except ValueError as error:
        raise ValueError(f"{path}: line {text.count(chr(10), 0, at) + 1}: {error}") from None
    return found


def _value(match: re.Match[str], interpolation: Interpolation) -> str:
    if match["literal"] is not None:
        return match["literal"].replace("\\'", "'")
    if match["escaped"] is not None:
        unescaped = re.sub(
            r"\\(.)", lambda escape: _ESCAPED.get(escape[1], escape[0]), match["escaped"], flags=re.DOTALL
        )
        return interpolation.apply(unescaped)
    return interpolation.apply(re.split(r"[ \t]#", match["plain"], maxsplit=1)[0].rstrip())
