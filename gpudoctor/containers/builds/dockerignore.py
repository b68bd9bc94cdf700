"""Which files of a build context `.dockerignore` leaves out.

Source: github.com/moby/patternmatcher, which the classic builder and BuildKit share. It is another language than
.gitignore: a bare name matches at the root only, and the last matching pattern decides.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable

from gpudoctor.containers.builds.patterns import path_expression
from gpudoctor.model.record import record

MAXIMUM_PATTERNS = 10_000


@record
class Pattern:
    """One line of the file. excepts: it begins with "!", and takes files in again."""

    text: str
    expression: re.Pattern[str]
    excepts: bool = False


class DockerIgnore:
    """The patterns of one file, in their order."""

    def __init__(self, patterns: Iterable[Pattern] = ()) -> None:
        self._patterns = tuple(patterns)
        self.has_exceptions = any(pattern.excepts for pattern in self._patterns)

    def ignores(self, path: str) -> bool:
        """Return whether `path` (relative to the context, with "/") is left out: it, or a folder above it."""
        return self.decides(path) is not None

    def decides(self, path: str) -> str | None:
        """Return the pattern that leaves `path` out; None where none does."""
        names = path.split("/")
        paths = ["/".join(names[: end + 1]) for end in range(len(names))]
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
    lines = text.removeprefix("\ufeff").splitlines()
    if len(lines) > MAXIMUM_PATTERNS:
        raise ValueError(f"more than {MAXIMUM_PATTERNS:,} lines")
    parsed = (_pattern(line, number) for number, line in enumerate(lines, 1) if not line.startswith("#"))
    return DockerIgnore(pattern for pattern in parsed if pattern is not None)


def _pattern(line: str, number: int) -> Pattern | None:
    """Return the pattern of one line; None where it holds none. "." is ignored for historical reasons."""
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
        raise ValueError(f"line {number}: {text[:80]!r} is no pattern: {error}") from None
    return Pattern(text=line.strip(), expression=expression, excepts=excepts)
