"""Patterns of files, as `.dockerignore` and COPY write them, to regular expressions.

Source: github.com/moby/patternmatcher for `.dockerignore`, Go's path/filepath.Match for COPY.
"""

import re

MAXIMUM_DEEP = 8
"""How often `**` may stand in a pattern: each multiplies the time that a match may take by the depth of the path."""

_STARS = re.compile(r"(?:\*\*/?)+|\*")
_MEMBER = r"(?:\\.|[^\\\]-])"
_CLASS = rf"\[\^?(?:{_MEMBER}(?:-{_MEMBER})?)+\]"
_ATOM = re.compile(rf"\\.|{_CLASS}|[^\\\[]", re.DOTALL)


def path_expression(pattern: str) -> str:
    """Return the regular expression of a pattern: `**` is any number of folders, `*` and `?` stay within one name.

    Where another `*` follows, the first place at which a `*` can end is as good as any, so it is not tried again
    (a lookahead is never entered twice): many of them would take exponential time.

    Raises:
        ValueError: it is no pattern, or holds too many `**`.
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


def name_expression(pattern: str) -> re.Pattern[str]:
    """Return the expression of one name in a source of COPY, where `**` is no more than `*`.

    Raises:
        ValueError: it is no pattern.
    """
    try:
        return re.compile(path_expression(re.sub(r"\*+", "*", pattern)))
    except re.error as error:
        raise ValueError(f"{pattern[:80]!r} is no pattern: {error}") from None


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
