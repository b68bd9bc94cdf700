"""Which files of a build context `.dockerignore` leaves out, and the patterns of files there and behind COPY.

Source: github.com/moby/patternmatcher, which the classic builder and BuildKit share; for COPY Go's path/filepath.Match.
It is another language than .gitignore: a bare name matches at the root only, and the last matching pattern decides.
"""

import posixpath
import re
from collections.abc import Iterable, Sequence
from functools import cache

from gpudoctor.model.record import record

MAXIMUM_PATTERNS = 10_000
MAXIMUM_DEEP = 8
"""How often `**` may are in a pattern: each multiplies the time that a match may take by the depth of the path."""

_STARS = re.compile(r"(?:\*\*/?)+|\*")
_MEMBER = r"(?:\\.|[^\\\]-])"
_CLASS = rf"\[\^?(?:{_MEMBER}(?:-{_MEMBER})?){{1,250}}\]"
_ATOM = re.compile(rf"\\.|{_CLASS}|[^\\\[]", re.DOTALL)


@record
class Pattern:
    """One line of the file. path: what it names. excepts: it begins with "!", and takes files in again."""

    text: str
    path: str
    expression: re.Pattern[str]
    excepts: bool = False


class DockerIgnore:
    """The patterns of one file, in their order.

    enters_all: an exception with a wildcard is looked for in ignored folders too, as by Docker's BuildKit from 23.0 on.
    The classic builder and the older BuildKit enter an ignored folder only if the text of an exception begins with
    its path. Source: github.com/tonistiigi/fsutil filter.go; moby archive.go TarWithOptions.
    """

    def __init__(self, patterns: Iterable[Pattern] = (), *, enters_all: bool = True) -> None:
        self._patterns = tuple(patterns)
        self._enters_all = enters_all
        self.has_exceptions = any(pattern.excepts for pattern in self._patterns)

    def entering_few(self) -> "DockerIgnore":
        """Return these patterns as the classic builder and the older BuildKit read them."""
        return DockerIgnore(self._patterns, enters_all=False)

    def ignores(self, path: str) -> bool:
        """Return whether `path` (relative to the context, with "/") is left out: it, or a folder above it."""
        return self.decides(path) is not None

    def decides(self, path: str) -> str | None:
        """Return the pattern that ignores `path`; None if it is not ignored."""
        names = path.split("/")
        paths = ["/".join(names[: end + 1]) for end in range(len(names))]
        if self.has_exceptions and not self._enters_all:
            for end in range(1, len(paths)):
                found, folder = self._last(paths[:end]), f"{paths[end - 1]}/"
                if found and not any(p.excepts and f"{p.path}/".startswith(folder) for p in self._patterns):
                    return found
        return self._last(paths)

    def _last(self, paths: Sequence[str]) -> str | None:
        """Return the pattern that leaves the last of the paths out; the others are the folders above it."""
        found: str | None = None
        for pattern in self._patterns:
            if pattern.excepts == (found is not None) and any(pattern.expression.match(p) for p in paths):
                found = None if pattern.excepts else pattern.text
        return found


def parse_dockerignore(text: str) -> DockerIgnore:
    """Return the patterns of `text`.

    Raises:
        ValueError: a pattern is wrong, as docker build would say too; the message names the line.
    """
    lines = text.removeprefix("\ufeff").split("\n")
    if len(lines) > MAXIMUM_PATTERNS:
        raise ValueError(f"more than {MAXIMUM_PATTERNS:,} lines")
    parsed = (_pattern(line, number) for number, line in enumerate(lines, 1) if not line.startswith("#"))
    return DockerIgnore(pattern for pattern in parsed if pattern is not None)


def _pattern(line: str, number: int) -> Pattern | None:
    """Return the pattern of one line; None if it contains none. "." is ignored for historical reasons."""
    text = line.strip()
    excepts = text.startswith("!")
    if excepts:
        text = text[1:].strip()
        if not text:
            raise ValueError(f'line {number}: "!" without a pattern')
    cleaned = posixpath.normpath(text).lstrip("/") if text else ""
    if cleaned in ("", "."):
        return None
    try:
        expression = re.compile(path_expression(cleaned))
    except (re.error, ValueError) as error:
        raise ValueError(f"line {number}: {text[:80]!r} is not a pattern: {error}") from None
    return Pattern(text=line.strip(), path=cleaned, expression=expression, excepts=excepts)


def path_expression(pattern: str) -> str:
    """Return the regular expression of a pattern: `**` is any number of folders, `*` and `?` stay within one name.

    If another `*` follows, the first place at which a `*` can end is as good as any, so it is not tried again
    (a lookahead is never entered twice): many of them would take exponential time.

    Raises:
        ValueError: it is not a pattern, or contains too many `**`.
    """
    pieces = _pieces(pattern)
    if pieces.count("**") > MAXIMUM_DEEP:
        raise ValueError(f"more than {MAXIMUM_DEEP} times **")
    expression = ""
    for number, piece in enumerate(pieces):
        if piece == "**":
            expression += "(?:.*/)?" if number + 1 < len(pieces) else ".*"
        elif piece == "*" and pieces[number + 2 : number + 3] == ["*"]:
            expression += f"(?=(?P<s{number}>[^/]*?{pieces[number + 1]}))(?P=s{number})"
        elif piece == "*":
            expression += "[^/]*"
        elif pieces[number - 1 : number] != ["*"] or pieces[number + 1 : number + 2] != ["*"]:
            expression += piece
    return f"(?s:{expression})\\Z"


@cache
def name_expression(pattern: str) -> re.Pattern[str]:
    """Return the expression of one name in a source of COPY, where `**` means the same as `*`.

    Raises:
        ValueError: it is not a pattern.
    """
    try:
        return re.compile(path_expression(re.sub(r"\*+", "*", pattern)))
    except re.error as error:
        raise ValueError(f"{pattern[:80]!r} is not a pattern: {error}") from None


def _pieces(pattern: str) -> list[str]:
    """Return the pattern in pieces: "*", "**" (a run of them with the slash after it), and expressions between them."""
    pieces: list[str] = []
    at = 0
    while at < len(pattern):
        star = _STARS.match(pattern, at)
        if star is not None:
            pieces.append("**" if star[0] != "*" else "*")
            at = star.end()
            continue
        atom = _ATOM.match(pattern, at)
        if atom is None:
            raise ValueError(
                "[ is not closed, or - or ] in a class needs a backslash" if pattern[at] == "[" else "\\ at the end"
            )
        if not pieces or pieces[-1] in ("*", "**"):
            pieces.append("")
        pieces[-1] += _atom(atom[0])
        at = atom.end()
    return pieces


def _atom(text: str) -> str:
    """Return the expression of one character, escaped character or class."""
    if text == "?":
        return "[^/]"
    if text.startswith("["):
        start = "[^" if text.startswith("[^") else "["
        members = re.sub(r"\\(.)|([^-\\])", lambda member: re.escape(member[1] or member[2]), text[len(start) : -1])
        return f"{start}{members}]"
    return re.escape(text.removeprefix("\\") or text)
