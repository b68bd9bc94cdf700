"""A stand-in for a library of a GPU: it answers what it is told to, and writes down what it is asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


class Asked:
    """Whatever is read of it is a function: a call is written down, and answered as `answers` say by its dotted name.

    An answer that is an iterator gives its values one after another; an exception is raised. `values` are attributes;
    an exception there is raised when the attribute is read.
    """

    def __init__(
        self, answers: Mapping[str, Any] | None = None, calls: list[Any] | None = None, name: str = "", **values: Any
    ) -> None:
        self._answers = answers or {}
        self.calls: list[Any] = [] if calls is None else calls
        self._name = name
        self._values = values

    def __getattr__(self, part: str) -> Any:
        name = f"{self._name}.{part}".lstrip(".")
        inner = {key: value for key, value in self._values.items() if key.startswith(f"{part}__")}
        if part in self._values:
            return _given(self._values[part])
        inside = {key.removeprefix(f"{part}__"): value for key, value in inner.items()}
        return Asked(self._answers, self.calls, name, **inside)

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        self.calls.append((self._name, *arguments, *([options] if options else [])))
        answer = self._answers.get(self._name)
        return _given(next(answer) if isinstance(answer, Iterator) else answer)


def _given(answer: Any) -> Any:
    if isinstance(answer, Exception):
        raise answer
    return answer
