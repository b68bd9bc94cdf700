"""The catalog of checks: every module in the package gpudoctor.checks registers one."""

from __future__ import annotations

import importlib
import inspect
import os
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from gpudoctor.model import SECTIONS, Finding
from gpudoctor.model.record import record

if TYPE_CHECKING:
    from gpudoctor.plugins import Plugin

T = TypeVar("T")
CheckFunction = Callable[..., Iterator[Finding]]
_registered: dict[str, Check] = {}

_NO_SECTIONS = ("reports", "taken_at", "snapshot", "requirements")

FAMILIES = (
    "driver",
    "device",
    "multi-gpu",
    "container",
    "cuda",
    "python",
    "torch",
    "cupy",
    "memory",
    "precision",
    "vendor",
    "tool",
)


@record
class Check:
    """A registered check.

    sections: snapshot sections that it reads; an unknown one skips it.
    optional: sections that it reads where they are known: its parameters with the default None.
    explains: ids of checks whose findings follow from this one's; they vanish when this one is mended.
    origin: whose check it is: "gpudoctor", or a plugin.
    broken: why it cannot be run: it stands for a plugin that cannot be loaded.
    """

    id: str
    family: str
    sections: tuple[str, ...]
    optional: tuple[str, ...]
    explains: tuple[str, ...]
    function: CheckFunction
    origin: str = "gpudoctor"
    broken: str = ""

    @property
    def title(self) -> str:
        """The first line of the docstring: the problem in one sentence."""
        return (inspect.getdoc(self.function) or "").partition("\n")[0]

    @property
    def page(self) -> str:
        """The whole docstring: what it finds, why it matters, what passes on purpose, the source."""
        return inspect.getdoc(self.function) or ""


class Skip(Exception):
    """A check cannot answer; the message says why."""


class NotApplicable(Skip):
    """A check need not answer: its question does not arise on this machine."""


def check(*, family: str, explains: tuple[str, ...] = ()) -> Callable[[CheckFunction], CheckFunction]:
    """Register a check. Its id is its function's name, its sections are the names of its parameters.

    Besides sections, a parameter may be `reports` (how the probes went), `taken_at` (when), `snapshot` (all of it) or
    `requirements` (what the user asks of the machine).

    Raises:
        ValueError: a parameter is no section, the family is unknown, or the id is taken by another module.
    """

    def register(function: CheckFunction) -> CheckFunction:
        check_id = function.__name__.replace("_", "-")
        code = function.__code__
        parameters = code.co_varnames[: code.co_argcount]
        unknown = [name for name in parameters if name not in (*SECTIONS, *_NO_SECTIONS)]
        if unknown or family not in FAMILIES:
            raise ValueError(f"check {check_id}: no such section or family: {', '.join(unknown) or family}")
        taken = _registered.get(check_id)
        if taken is not None and taken.function.__module__ != function.__module__:
            raise ValueError(f"check {check_id} is in {taken.function.__module__} and in {function.__module__}")
        needed = len(parameters) - len(function.__defaults__ or ())
        _registered[check_id] = Check(
            id=check_id,
            family=family,
            sections=parameters[:needed],
            optional=parameters[needed:],
            explains=explains,
            function=function,
            origin=_origin(function.__module__),
        )
        return function

    return register


def _origin(module: str) -> str:
    return "gpudoctor" if module.startswith("gpudoctor.checks.") else f"the plugin {module}"


def known(value: T | None, fact: str) -> T:
    """Return `value`, or skip the check because `fact` is unknown.

    Raises:
        Skip: the value is None.
    """
    if value is None:
        raise Skip(f"{fact} is unknown")
    return value


def applies(condition: Any, reason: str) -> None:
    """Skip the check for `reason` unless `condition` holds: the question does not arise on this machine.

    Raises:
        NotApplicable: the condition is false.
    """
    if not condition:
        raise NotApplicable(reason)


def load_checks(folder: str | None = None) -> tuple[Check, ...]:
    """Return every check, in the order of families and ids: those of installed plugins too, and those in `folder`.

    A plugin that cannot be loaded stands among them as a check that is broken.

    Raises:
        UsageError: there is no such folder, or it cannot be read.
    """
    from gpudoctor import plugins

    _load_own_checks()
    broken = [check for plugin in plugins.installed() for check in _load(plugin)]
    kept = dict(_registered)
    try:
        if folder is not None:
            broken += [check for plugin in plugins.in_folder(folder) for check in _load(plugin)]
        found = (*_registered.values(), *broken)
    finally:  # another run in this process may have another folder, or none
        _restore(kept)
    return tuple(sorted(found, key=lambda c: (FAMILIES.index(c.family), c.id)))


def _load_own_checks() -> None:
    """Import them by their paths: to look for a hundred modules by their names takes two milliseconds more."""
    from gpudoctor.plugins import run_file

    package = importlib.import_module("gpudoctor.checks")
    for path in package.__path__:
        for file in sorted(os.listdir(path)):
            module = f"{package.__name__}.{file[:-3]}"
            if file.endswith(".py") and file != "__init__.py" and module not in sys.modules:
                run_file(module, os.path.join(path, file))


def _load(plugin: Plugin) -> Iterator[Check]:
    """Register the checks of `plugin`; where that fails none of them, and yield the check that says so."""
    before = dict(_registered)
    try:
        plugin.load()
    except (Exception, SystemExit) as error:
        _restore(before)
        yield _broken(plugin, f"{type(error).__name__}: {error}")
        return
    modules = (f"{check.function.__module__}." for check in before.values())
    imported_before = any(module.startswith(f"{plugin.module}.") for module in modules)
    if len(_registered) == len(before) and not imported_before:
        yield _broken(plugin, "it registers no check")


def _restore(registered: dict[str, Check]) -> None:
    _registered.clear()
    _registered.update(registered)


def _broken(plugin: Plugin, why: str) -> Check:
    def function() -> Iterator[Finding]:
        yield from ()

    reason = f"the plugin {plugin.name} ({plugin.place}) cannot be loaded: {why}"
    function.__doc__ = f"{reason[0].upper()}{reason[1:]}\n\nWhy: its checks are not run until it is mended or removed."
    words = "".join(letter if letter.isalnum() else " " for letter in plugin.name.lower()).split()
    return Check(
        id="-".join(("plugin", *words)),
        family="tool",
        sections=(),
        optional=(),
        explains=(),
        function=function,
        origin=_origin(plugin.module),
        broken=reason,
    )
