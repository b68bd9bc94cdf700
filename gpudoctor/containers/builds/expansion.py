"""Variables and quotes in the words of a Dockerfile, and the variables in texts of a compose file.

Source: https://docs.docker.com/reference/dockerfile/#environment-replacement
"""

import re
from collections.abc import Mapping

_DEEPEST = 20
"""Defaults may hold variables with defaults: ${A:-${B:-c}}; a deeper word is hostile."""

MAXIMUM_CHARACTERS = 4 << 20
"""Of a word: one that names long variables, which name others, could fill the memory."""

_NAME = re.compile(r"\d|\w+")  # $1 is one digit long, as in a shell
_BRACE = re.compile(r"[{}]")


def expand(word: str, variables: Mapping[str, str], escape: str = "\\", *, keep_quotes: bool = False) -> str:
    """Return `word` with its variables replaced and its quotes taken away. An unset variable is empty.

    escape: "" for none. keep_quotes: quotes are plain characters, as in a here-document.

    Raises:
        ValueError: a brace or quote is not closed, a required variable (`${NAME:?text}`) is not set, or an operator is
            unknown.
    """
    return _expand(word, variables, escape, "" if keep_quotes else "'\"", 0)


def _expand(word: str, variables: Mapping[str, str], escape: str, quotes: str, depth: int) -> str:
    """Return the word expanded. depth: of variables in which it is nested."""
    if depth > _DEEPEST:
        raise ValueError("variables nested too deep")
    parts: list[str] = []
    at, inside = 0, False  # inside: of double quotes
    while at < len(word):
        character, following = word[at], word[at + 1 : at + 2]
        if character == escape:
            is_plain = inside and following not in ('"', "$", escape)
            parts.append(escape + following if is_plain else following)
            at += 2
        elif character == "$" and following == "{":
            end = _closing_brace(word, at + 2)
            parts.append(_braced(word[at + 2 : end], variables, escape, quotes, depth))
            at = end + 1
        elif character == "$":
            name = _NAME.match(word, at + 1)
            parts.append(variables.get(name[0], "") if name else "$")
            at = name.end() if name else at + 1
        elif character == "'" and character in quotes and not inside:
            text, closed, _ = word[at + 1 :].partition("'")
            if not closed:
                raise ValueError(f"' is not closed in {word[:80]!r}")
            parts.append(text)
            at += len(text) + 2
        else:
            if character == '"' and character in quotes:
                inside = not inside
            else:
                parts.append(character)
            at += 1
    if inside:
        raise ValueError(f'" is not closed in {word[:80]!r}')
    if sum(map(len, parts)) > MAXIMUM_CHARACTERS:
        raise ValueError(f"more than {MAXIMUM_CHARACTERS:,} characters")
    return "".join(parts)


def _braced(text: str, variables: Mapping[str, str], escape: str, quotes: str, depth: int) -> str:
    """Return the value of ${NAME}, ${NAME:-default}, ${NAME:+other} or ${NAME:?text}, with or without the colon."""
    match = _NAME.match(text)
    name = match[0] if match else ""
    rest, value = text[len(name) :], variables.get(name)
    is_set = bool(value) if rest.startswith(":") else value is not None
    operator, argument = rest.removeprefix(":")[:1], rest.removeprefix(":")[1:]
    if rest and operator not in ("-", "+", "?"):
        raise ValueError(f"${{{name}{rest[:20]}}} is not supported")
    if not rest or (is_set and operator != "+"):
        return value or ""
    if operator == "+" and not is_set:
        return ""
    argument = _expand(argument, variables, escape, quotes, depth + 1)
    if operator == "?":
        raise ValueError(f"{name} is required: {argument[:80]}")
    return argument


def _closing_brace(word: str, start: int) -> int:
    depth = 1
    for match in _BRACE.finditer(word, start):
        depth += 1 if match[0] == "{" else -1
        if not depth:
            return match.start()
    raise ValueError(f"{{ is not closed in {word[:80]!r}")
