"""Named fixes: a check names one, and the engine turns it into a remedy for the diagnosed machine."""

import os
import re
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Protocol, TypeVar

from gpudoctor.model import Container, Fix, Place, Python, Remedy, System
from gpudoctor.model.codec import json_next_to
from gpudoctor.remedies.commands import (
    environment_of,
    is_windows,
    python_command,
    quote,
    quote_value,
    refused,
    with_sudo,
)

Made = Remedy | Fix | tuple[Remedy | Fix, ...]
Builder = TypeVar("Builder", bound=Callable[..., Made])
# Characters that a value may have inside Python code, whatever a report says.
_IN_CODE = re.compile(r"[\w.:+-]*")
_builders: dict[str, Callable[..., Made]] = {}


class Machine(Protocol):
    """The diagnosed machine: calls a function with the sections that its parameters name."""

    def call(self, function: Callable[..., Any], **arguments: Any) -> Any: ...


def fix(builder: Builder) -> Builder:
    """Register a function that makes a fix, named like the function with hyphens. It returns remedies or other fixes.

    Parameters named like snapshot sections or conclusions get those of the diagnosed machine; an unknown section is a
    record without facts. The other parameters are the check's arguments.

    Raises:
        ValueError: another function has that name.
    """
    name = builder.__name__.replace("_", "-")
    if name in _builders and _builders[name].__module__ != builder.__module__:
        raise ValueError(f"fix {name} is in {_builders[name].__module__} and in {builder.__module__}")
    _builders[name] = builder
    return builder


def remedies_of(fixes: tuple[Fix | Remedy, ...], machine: Machine) -> tuple[Remedy, ...]:
    """Return the remedies for this machine, in the order of the fixes. Raises KeyError: no fix has that name."""
    found: list[Remedy] = []
    for item in fixes:
        if isinstance(item, Remedy):
            found.append(item)
        else:
            made = machine.call(builder_of(item.name), **item.arguments)
            found += remedies_of(made if isinstance(made, tuple) else (made,), machine)
    return tuple(found)


def builder_of(name: str) -> Callable[..., Made]:
    """Return the function that makes the fix of this name. Raises KeyError: no fix has that name."""
    if name in _builders:
        return _builders[name]
    if name in _advice():
        return _from_table(_advice()[name])
    for module in _likely_modules(name):
        if name not in _builders:
            import_module(f"gpudoctor.remedies.{module}")
    return _builders[name]


def remedy_of_row(name: str, system: System, python: Python = Python()) -> Remedy:
    """Return the remedy of a table row, for a fix that must be a single remedy."""
    made = _from_table(_advice()[name])(python=python, system=system, container=Container(), place=Place())
    assert isinstance(made, Remedy)
    return made


def _likely_modules(name: str) -> list[str]:
    """Return the modules with fixes, most words in common with the name first: importing all takes 15 ms."""
    words = name.split("-")
    files = os.listdir(os.path.dirname(__file__))
    modules = sorted(name[:-3] for name in files if name.endswith(".py") and name != "__init__.py")
    return sorted(modules, key=lambda module: -sum(word in words for word in module.split("_")))


def _advice() -> dict[str, dict[str, Any]]:
    """Return the rows of the table by name: the fixes without code."""
    table: dict[str, dict[str, Any]] = json_next_to(__file__, "advice")["fixes"]
    return table


def _from_table(row: Mapping[str, Any]) -> Callable[..., Made]:
    """Return a function that makes the fix of a row: from its texts, or another fix with the row's arguments."""

    def advise(python: Python, system: System, container: Container, place: Place, **arguments: Any) -> Made:
        windows = place.is_windows or is_windows(python, system)
        uv = python.installer == "uv"
        there = {
            "windows": windows,
            "mac": system.os == "darwin",
            "wsl": place.in_wsl,
            "container": place.in_container,
            "uv": uv,
        }
        there["conda"] = not windows and (python.environment == "conda" or python.conda_name is not None)
        there["kubernetes"] = "kubernetes" in (container.engine, system.container)
        there["k3s"] = container.cluster is not None
        variants = [row[name] for name, applies in there.items() if applies and name in row]
        if None in variants:
            return ()
        others = [part for part in variants if "fix" in part or "fixes" in part][-1:]
        own = {name: value for part in others or (row, *variants) for name, value in part.items() if name not in there}
        if "fixes" in own:
            filled = [{key: _filled(text, arguments) for key, text in other.items()} for other in own["fixes"]]
            return tuple(Fix(other.pop("fix"), **other) for other in filled)
        commands = own.pop("commands", ())
        texts = {name: _filled(value, arguments) for name, value in own.items()}
        if "fix" in texts:
            return Fix(texts.pop("fix"), **texts)
        return Remedy(**texts, commands=tuple(_command(command, arguments, python, system) for command in commands))

    return advise


def _command(command: str | list[str], arguments: Mapping[str, Any], python: Python, system: System) -> str:
    """Return the command, with each argument quoted.

    A list is passed to the environment's interpreter. In a text "{python}" is that interpreter, "{sudo}" is sudo
    unless the user is root or on Windows, and "{prefix}" is conda's option for the environment.
    """
    if isinstance(command, list):
        texts = {name: str(value) for name, value in arguments.items()}
        plain = {name: text if _IN_CODE.fullmatch(text) else refused(text) for name, text in texts.items()}
        return python_command(python, *_filled(command, plain))
    windows = is_windows(python, system)
    environment = environment_of(python, system)
    quoted = {name: quote_value(str(value), windows) for name, value in arguments.items()}
    quoted["python"] = python_command(python)
    quoted["pip_install"] = environment.pip("install")
    quoted["sudo"] = "" if windows else with_sudo("", system)
    quoted["prefix"] = "".join(f" {quote(word, windows)}" for word in environment.conda_options())
    return re.sub(r"\{(\w+)\}", lambda match: quoted.get(match[1], match[0]), command)


def _filled(template: Any, arguments: Mapping[str, Any]) -> Any:
    """Return a text, or each of several, with its arguments: "again[ for {cuda}]" is "again" without `cuda`.

    A text that is only a slot becomes the argument itself. Braces without an argument's name are code and stay.
    """
    if isinstance(template, list):
        return tuple(_filled(text, arguments) for text in template)
    if not isinstance(template, str):
        return template
    if slot := re.fullmatch(r"\{(\w+)\}", template):
        return arguments.get(slot[1])

    def optional(match: re.Match[str]) -> str:
        return match[1] if all(arguments.get(name) for name in re.findall(r"\{(\w+)\}", match[1])) else ""

    text = re.sub(r"\[([^\[\]]*\{\w+\}[^\[\]]*)\]", optional, template)
    return re.sub(r"\{(\w+)\}", lambda match: str(arguments.get(match[1], match[0])), text)
