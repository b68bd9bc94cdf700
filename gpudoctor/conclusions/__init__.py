"""What nobody read and the facts together show. One file per concluded section: a function of the same name.

Its parameters name the sections it reads: of the snapshot, or concluded ones (see `Facts.call` for unknown ones).
"""

from collections.abc import Callable, Iterable
from dataclasses import is_dataclass
from functools import cache
from importlib import import_module
from typing import Any

from gpudoctor.model import SECTIONS, Snapshot
from gpudoctor.model.conclusions import CONCLUSIONS


class Facts:
    """The sections of a snapshot, and the conclusions from them, by name. A conclusion is made when it is asked for.

    A function that asks for `machine` gets these facts themselves, to call another function with them.
    given: what else functions may ask for by name, such as what the user requires of the machine.
    """

    def __init__(self, snapshot: Snapshot, **given: Any) -> None:
        self.snapshot = snapshot
        self._known: dict[str, Any] = {"snapshot": snapshot, "machine": self, "requirements": (), **given}

    def get(self, name: str) -> Any:
        """Return the section, None if it is unknown."""
        if name not in self._known:
            concluded = name in CONCLUSIONS
            self._known[name] = self.call(conclude(name)) if concluded else getattr(self.snapshot, name)
        return self._known[name]

    def call(self, function: Callable[..., Any], **arguments: Any) -> Any:
        """Return what `function` returns for `arguments` and the sections that its other parameters name.

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
    """Import what concludes each section, for a run that waits for its machine meanwhile."""
    for name in CONCLUSIONS:
        conclude(name)


@cache
def parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    """Return the names of the parameters of `function`."""
    code = function.__code__
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def sections_of(names: Iterable[str]) -> set[str]:
    """Return the sections of the snapshot that are read for these sections, concluded ones or not."""
    found: set[str] = set()
    for name in names:
        found |= sections_of(parameters(conclude(name))) if name in CONCLUSIONS else {name}
    return found
