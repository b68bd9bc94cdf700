"""The catalog of checks: every module in the package gpudoctor.checks registers one."""

from __future__ import annotations

import importlib
import inspect
import os
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from gpudoctor.model import SECTIONS, Finding
from gpudoctor.model.record import record

T = TypeVar("T")
CheckFunction = Callable[..., Iterator[Finding]]
_registered: dict[str, Check] = {}

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
    """

    id: str
    family: str
    sections: tuple[str, ...]
    optional: tuple[str, ...]
    explains: tuple[str, ...]
    function: CheckFunction

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

    Besides sections, a parameter may be `reports` (how the probes went) or `taken_at` (when).

    Raises:
        ValueError: a parameter is no section, the family is unknown, or the id is taken by another module.
    """

    def register(function: CheckFunction) -> CheckFunction:
        check_id = function.__name__.replace("_", "-")
        code = function.__code__
        parameters = code.co_varnames[: code.co_argcount]
        unknown = [name for name in parameters if name not in (*SECTIONS, "reports", "taken_at")]
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
        )
        return function

    return register


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


def load_checks() -> tuple[Check, ...]:
    """Return every check, in the order of families and ids."""
    package = importlib.import_module("gpudoctor.checks")
    for folder in package.__path__:
        for name, extension in map(os.path.splitext, sorted(os.listdir(folder))):
            if extension == ".py" and name != "__init__":
                importlib.import_module(f"{package.__name__}.{name}")
    return tuple(sorted(_registered.values(), key=lambda c: (FAMILIES.index(c.family), c.id)))
