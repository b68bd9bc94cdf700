"""Fixes by their names: a check names one, the engine has it made into a remedy for the machine diagnosed."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, Protocol, TypeVar

import gpudoctor.remedies
from gpudoctor.model import Fix, Remedy, System
from gpudoctor.remedies.commands import quote

Builder = TypeVar("Builder", bound=Callable[..., "Remedy | tuple[Remedy, ...]"])
_builders: dict[str, Callable[..., Remedy | tuple[Remedy, ...]]] = {}


class Machine(Protocol):
    """The machine diagnosed: calls a function with the sections that its parameters name."""

    def call(self, function: Callable[..., Any], **arguments: Any) -> Any: ...


def fix(builder: Builder) -> Builder:
    """Register what makes a fix: its name is the function's, with hyphens.

    Parameters that are named like sections of the snapshot, or like conclusions, get those of the machine diagnosed
    (None if unknown); the others are the arguments that the check gives.

    Raises:
        ValueError: another function has that name.
    """
    name = builder.__name__.replace("_", "-")
    if name in _builders and _builders[name].__module__ != builder.__module__:
        raise ValueError(f"fix {name} is in {_builders[name].__module__} and in {builder.__module__}")
    _builders[name] = builder
    return builder


def remedies_of(fixes: tuple[Fix, ...], machine: Machine) -> tuple[Remedy, ...]:
    """Return what to do on this machine, in the order of the fixes.

    Raises:
        KeyError: no fix has that name.
    """
    found: list[Remedy] = []
    for named in fixes:
        made = machine.call(builder_of(named.name), **named.arguments)
        found += made if isinstance(made, tuple) else (made,)
    return tuple(found)


def builder_of(name: str) -> Callable[..., Remedy | tuple[Remedy, ...]]:
    """Return what makes the fix of this name.

    Raises:
        KeyError: there is none.
    """
    if name not in _builders:
        for module in iter_modules(gpudoctor.remedies.__path__, "gpudoctor.remedies."):
            import_module(module.name)
    return _builders[name] if name in _builders else _from_table(_advice()[name])


@cache
def _advice() -> dict[str, dict[str, Any]]:
    """Return the fixes that are the same on every machine: {"summary", "commands", "needs", "reference"} by name."""
    with open(os.path.join(os.path.dirname(__file__), "advice.json"), encoding="utf-8") as file:
        table: dict[str, dict[str, Any]] = json.load(file)["fixes"]
    return table


def _from_table(row: Mapping[str, Any]) -> Callable[..., Remedy]:
    def advise(system: System | None, **arguments: Any) -> Remedy:
        windows = system is not None and system.os == "windows"
        quoted = {name: quote(str(value), windows) for name, value in arguments.items()}
        return Remedy(
            summary=_filled(row["summary"], arguments),
            commands=tuple(_filled(command, quoted) for command in row.get("commands", ())),
            needs=tuple(row.get("needs", ())),
            reference=row.get("reference"),
        )

    return advise


def _filled(template: str, arguments: Mapping[str, Any]) -> str:
    """Return the text with its arguments. Braces that hold no argument's name stay: they are code."""
    return re.sub(r"\{(\w+)\}", lambda match: str(arguments.get(match[1], match[0])), template)
