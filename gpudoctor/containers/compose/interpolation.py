"""Variables in the values of a compose file: $NAME, ${NAME:-default}, ${NAME:+other}, ${NAME:?text}; `$$` is a dollar.

A Dockerfile's words are another language (expansion.py): they have quotes and escapes, and `$$` is nothing special.
Source: https://docs.docker.com/reference/compose-file/interpolation/
"""

import re
from collections.abc import Mapping

MAXIMUM_CHARACTERS = 4 << 20
"""Of all results together: short texts that name long variables could fill the memory."""

_DEEPEST = 20
"""Defaults may hold variables with defaults: ${A:-${B:-c}}; a deeper text is hostile."""

_NAME = "[A-Za-z_][A-Za-z0-9_]*"
_VARIABLE = re.compile(rf"\$(?:(?P<dollar>\$)|(?P<plain>{_NAME})|\{{(?P<braced>{_NAME})(?P<operator>\}}|:?[-+?]))")
_BRACE = re.compile(r"\$\{|\}")


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
