"""Conclusions from several facts. One file per concluded section, with a function of the same name.

Its parameters name the snapshot or concluded sections that it reads (see `Facts.call` for unknown ones).
"""

from collections.abc import Callable, Iterable
from dataclasses import is_dataclass
from functools import cache
from importlib import import_module
from typing import Any

from gpudoctor.model import SECTIONS, Snapshot
from gpudoctor.model.conclusions import CONCLUSIONS


class Facts:
    """The sections of a snapshot and the conclusions from them, by name. Conclusions are made on first use.

    A function with a parameter `machine` gets this object, to call another function with it.
    given: other values that functions may take by name, such as the user's requirements.
    """

    def __init__(self, snapshot: Snapshot, **given: Any) -> None:
        self.snapshot = snapshot
        self._known: dict[str, Any] = {
            "snapshot": snapshot,
            "machine": self,
            "requirements": (),
            "gpu_policy": "auto",
            **given,
        }

    def get(self, name: str) -> Any:
        """Return the section, None if it is unknown."""
        if name not in self._known:
            concluded = name in CONCLUSIONS
            self._known[name] = self.call(conclude(name)) if concluded else getattr(self.snapshot, name)
        return self._known[name]

    def call(self, function: Callable[..., Any], **arguments: Any) -> Any:
        """Call `function` with `arguments` and the sections that its other parameters name.

        If a section is unknown, the parameter's default is used. Without a default it is a record without any fact if
        that is the parameter's type, otherwise None.
        """
        sections = {name: self.get(name) for name in parameters(function) if name not in arguments and self._has(name)}
        code, defaults = function.__code__, len(function.__defaults__ or ())
        defaulted = code.co_varnames[code.co_argcount - defaults : code.co_argcount]
        for name in [name for name, section in sections.items() if section is None]:
            kind = function.__annotations__.get(name)
            if name in defaulted:
                del sections[name]
            elif isinstance(kind, type) and is_dataclass(kind):
                sections[name] = kind()
        return function(**sections, **arguments)

    def _has(self, name: str) -> bool:
        return name in self._known or name in CONCLUSIONS or name in SECTIONS or name in ("reports", "taken_at")


@cache
def conclude(name: str) -> Callable[..., Any]:
    """Return the function that concludes the section `name`."""
    function: Callable[..., Any] = getattr(import_module(f"gpudoctor.conclusions.{name}"), name)
    return function


def load_conclusions() -> None:
    """Import all conclusions, while a run waits for its probes."""
    for name in CONCLUSIONS:
        conclude(name)


@cache
def parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    """Return the names of the parameters of `function`."""
    code = function.__code__
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def sections_of(names: Iterable[str]) -> set[str]:
    """Return the snapshot sections that these sections, concluded or not, are made from."""
    found: set[str] = set()
    for name in names:
        found |= sections_of(parameters(conclude(name))) if name in CONCLUSIONS else {name}
    return found
