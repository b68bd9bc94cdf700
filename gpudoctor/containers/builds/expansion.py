"""Variables and quotes in the words of a Dockerfile.

Source: https://docs.docker.com/reference/dockerfile/#environment-replacement
"""

from collections.abc import Mapping

QUOTES = "'\""

_DEEPEST = 20
"""Defaults may hold variables with defaults: ${A:-${B:-c}}; a deeper word is hostile."""


def expand(word: str, variables: Mapping[str, str], escape: str = "\\", *, keep_quotes: bool = False) -> str:
    """Return `word` with its variables replaced and its quotes taken away. An unset variable is empty.

    keep_quotes: quotes are plain characters, as in a here-document.

    Raises:
        ValueError: a brace or quote is not closed, a required variable (`${NAME:?text}`) is not set, or an operator is
            unknown.
    """
    return _Expansion(word, variables, escape, quotes="" if keep_quotes else QUOTES).whole()


class _Expansion:
    """One pass over a word."""

    def __init__(self, word: str, variables: Mapping[str, str], escape: str, quotes: str, depth: int = 0) -> None:
        if depth > _DEEPEST:
            raise ValueError("variables nested too deep")
        self._word = word
        self._variables = variables
        self._escape = escape
        self._quotes = quotes
        self._depth = depth
        self._at = 0

    def whole(self) -> str:
        return self._until("")

    def _until(self, end: str) -> str:
        """Return what stands before `end` (a quote; "" for the end of the word), and step over it."""
        parts: list[str] = []
        while self._at < len(self._word):
            character = self._word[self._at]
            self._at += 1
            if character == end:
                return "".join(parts)
            parts.append(self._one(character, inside=end))
        if end:
            raise ValueError(f"{end} is not closed in {self._word[:80]!r}")
        return "".join(parts)

    def _one(self, character: str, inside: str) -> str:
        """Return what `character`, which was just passed, stands for. inside: the quote that is open."""
        if character == self._escape:
            return self._escaped(inside)
        if character == "$":
            return self._variable()
        if inside or character not in self._quotes:
            return character
        return self._literal() if character == "'" else self._until(character)

    def _escaped(self, inside: str) -> str:
        following = self._word[self._at : self._at + 1]
        self._at += len(following)
        if inside and following not in (inside, "$", self._escape):
            return self._escape + following
        return following

    def _literal(self) -> str:
        end = self._word.find("'", self._at)
        if end < 0:
            raise ValueError(f"' is not closed in {self._word[:80]!r}")
        text = self._word[self._at : end]
        self._at = end + 1
        return text

    def _variable(self) -> str:
        if self._word[self._at : self._at + 1] == "{":
            self._at += 1
            return self._braced()
        name = self._name()
        return self._variables.get(name, "") if name else "$"

    def _name(self) -> str:
        start = self._at
        while self._at < len(self._word) and (self._word[self._at].isalnum() or self._word[self._at] == "_"):
            self._at += 1
            if self._word[start].isdigit():  # $1 is one character long, as in a shell
                break
        return self._word[start : self._at]

    def _braced(self) -> str:
        """Return the value of ${NAME}, ${NAME:-default}, ${NAME:+other} or ${NAME:?text}, with or without the colon."""
        name = self._name()
        rest = self._to_closing_brace()
        value = self._variables.get(name)
        if not rest:
            return value or ""
        is_set = bool(value) if rest.startswith(":") else value is not None
        operator, argument = rest.removeprefix(":")[:1], rest.removeprefix(":")[1:]
        if operator == "-":
            return (value or "") if is_set else self._nested(argument)
        if operator == "+":
            return self._nested(argument) if is_set else ""
        if operator == "?":
            if not is_set:
                raise ValueError(f"{name} is required: {self._nested(argument)[:80]}")
            return value or ""
        raise ValueError(f"${{{name}{rest[:20]}}} is not understood")

    def _to_closing_brace(self) -> str:
        depth, start = 1, self._at
        while self._at < len(self._word):
            character = self._word[self._at]
            depth += {"{": 1, "}": -1}.get(character, 0)
            self._at += 1
            if not depth:
                return self._word[start : self._at - 1]
        raise ValueError(f"{{ is not closed in {self._word[:80]!r}")

    def _nested(self, word: str) -> str:
        return _Expansion(word, self._variables, self._escape, self._quotes, self._depth + 1).whole()
