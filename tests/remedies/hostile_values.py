"""Hostile values, in every slot of a machine's facts and of a fix's arguments, for the tests of pasted commands."""

from __future__ import annotations

import dataclasses
import inspect
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from functools import cache
from typing import Any

from gpudoctor.conclusions import Facts
from gpudoctor.model import SECTIONS, ContainerSetup, CudaVersion, Fix, KnownGpu, PackageVersion, Remedy, Snapshot
from gpudoctor.model.conclusions import CONCLUSIONS
from gpudoctor.model.versions import ComputeCapability, DriverVersion
from gpudoctor.remedies import fixes
from gpudoctor.remedies.fitting import fitted
from gpudoctor.remedies.fixes import builder_of, remedies_of
from tests.remedies.test_every_fix import ARGUMENTS, CHOICES, names

BEGIN, END = "Zq8", "8qZ"
"""What stands before and after each: an argument with one of them must hold the value as a whole."""
CANARY = "canary"
_EVIL = (
    f"$(:>{CANARY})", f"`:>{CANARY}`", f";:>{CANARY};", f"|:>{CANARY}|", f"&:>{CANARY}&", f"&&:>{CANARY}&&",
    f"||:>{CANARY}||", f"\n:>{CANARY}\n", f"\r\n:>{CANARY}\r\n", f"';:>{CANARY};'", f'";:>{CANARY};"',
    f"'$(:>{CANARY})'", f'"$(:>{CANARY})"', f"'\"'\"';:>{CANARY};'", f"\\';:>{CANARY};\\'", f"\\\";:>{CANARY};\\\"",
    f">{CANARY}", f"<(:>{CANARY})", f"#\n:>{CANARY}", f"\\\n:>{CANARY}", "${IFS}", "$HOME", "$PATH", "%PATH%", "%OS%",
    "^&calc", "!!", "!echo", "a b", "\ta", "~root", "*", "?", "[a-z]", "{a,b}", "\\", "a\\b", "..", "-rf", "--target=x",
    "(a)", "‘;calc;’", "“;calc;”", "′", "；calc", "＄（calc）", "\u202ecod\u202c", "\u200b", "\u00a0calc", "\x1b[2J",  # noqa: RUF001
    "\x00", "a,b", "@a", "a@b", "#a", "=a", "a=b", ":a", "é", "%0A", "$env:PATH", "$(calc.exe)", "`ncalc", "'", '"',
)  # fmt: skip
VALUES = (*(f"{BEGIN}{evil}{END}" for evil in _EVIL), f"-{BEGIN}{END}", f"--{BEGIN}={END}", f" {BEGIN}{END}", "-rf", "")
DISCRIMINATORS: dict[str, dict[str, Any]] = {
    "linux, pip": {"os": "linux", "machine": "x86_64", "distribution": "ubuntu", "environment": "venv"},
    "linux, conda": {"os": "linux", "machine": "x86_64", "environment": "conda", "installer": "conda",
                     "conda_build": "cuda", "engine": "docker", "container": "", "build": "cuda", "compose": False},
    "linux, uv": {"os": "linux", "machine": "x86_64", "environment": "venv", "installer": "uv", "wsl": 2,
                  "container": "docker", "text": PackageVersion("2.4.1+cu121"), "build": "cpu", "library": "torch"},
    "linux, runner": {"os": "linux", "environment": "venv", "installer": "pip", "executable": None, "project": "",
                      "text": PackageVersion("2.4.1"), "build": "cpu", "container": "", "wsl": 0},
    "podman": {"os": "linux", "distribution": "fedora", "engine": "podman", "container": "", "wsl": 0, "build": "cpu",
               "by_podman_alone": True, "externally_managed": False, "text": PackageVersion("2.4.1")},
    "kubernetes": {"os": "linux", "engine": "kubernetes", "externally_managed": True, "docker_snap": False},
    "windows": {"os": "windows", "platform": "windows_amd64",
                "platform_tag": "win-amd64", "machine": "AMD64", "environment": "venv", "wsl": 0,
                "build": "cpu", "text": PackageVersion("2.4.1"), "container": "", "externally_managed": False},
    "windows, conda": {"os": "windows", "platform": "windows_amd64",
                       "platform_tag": "win-amd64", "environment": "conda", "installer": "conda",
                       "conda_build": "cpu", "wsl": 0, "container": "", "externally_managed": False},
    "all": {},
}  # fmt: skip
"""Facts that decide which command is advised, so that each is reached; all other texts are the hostile value."""
MACHINE_SLOTS = ("python", "sudo", "prefix")
GIVEN_BY_CODE = {
    "first": "pip list", "verify": "import torch", "show": "import torch", "options": "--gpus all", "program": "true",
    "granted": "compute", "engine": "podman", "service_lines": "gpus: all",
}  # fmt: skip
"""What no text of a machine is ever given as: commands, code and options, which checks and tables write themselves."""
WITH_NUMBERS = (
    "install-jax", "other-architectures", "newer-toolkit-for-compiler", "install-older-cupy", "replace-extension",
    "install-torch-with-companion",
)  # fmt: skip
"""Fixes with an argument that the patterns of the messages bound to digits, or to names of a table."""


def is_windows(machine: str) -> bool:
    return machine.startswith("windows")


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def hostile(kind: Any, value: str, given: Mapping[str, Any], name: str = "") -> Any:
    """Return an object of the type of which every text is `value`, except those that `given` has by field name."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):
        return hostile(next(one for one in arguments if one is not type(None)), value, given, name)
    if origin is typing.Annotated:
        return hostile(arguments[0], value, given, name)
    if origin is not None and issubclass(origin, Mapping):
        return {value: hostile(arguments[1], value, given)}
    if origin is not None and issubclass(origin, (tuple, Sequence)):
        return (hostile(arguments[0], value, given),)
    if kind in (str, bool, int) and name in given:
        return given[name]
    if kind is str:
        return value
    if kind is PackageVersion:
        return given.get("text", PackageVersion(value))
    known: dict[Any, Any] = {CudaVersion: CudaVersion(12, 4), DriverVersion: DriverVersion.parse("535.54.03")}
    known |= {ComputeCapability: ComputeCapability(8, 6), bool: True, int: 12, float: 1.0, Any: value, object: value}
    if kind in known:
        return known[kind]
    if isinstance(kind, type) and issubclass(kind, Enum):
        return next(iter(kind))
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        hints = _hints(kind)
        shown = {f.name: hostile(hints[f.name], value, given, f.name) for f in dataclasses.fields(kind) if f.init}
        return kind(**shown)
    return None


def machine_of(name: str, value: str, given: Mapping[str, Any] | None = None) -> Facts:
    """Return the facts of a machine whose texts are all hostile."""
    snapshot = hostile(Snapshot, value, DISCRIMINATORS[name] if given is None else given)
    return Facts(replace(snapshot, symptoms=(), reports=()))


@cache
def every_fix() -> tuple[str, ...]:
    """Return the names of all fixes, those of the table too."""
    return tuple(sorted({*names(), *fixes._advice(), "refresh-image", "replace-extension", "toolkit-for-gpu"}))


@cache
def arguments_of(name: str) -> tuple[tuple[str, Any], ...]:
    """Return the arguments of a fix, each with its type; () stands for an unknown one."""
    row = fixes._advice().get(name)
    if row is not None:
        import json
        import re

        slots = sorted(set(re.findall(r"\{(\w+)\}", json.dumps(row))))
        return tuple((slot, ContainerSetup if slot == "setup" else str) for slot in slots if slot not in MACHINE_SLOTS)
    builder = builder_of(name)
    hints = _hints(builder)
    sections = (*SECTIONS, *CONCLUSIONS, "machine")
    parameters = inspect.signature(builder).parameters
    return tuple((key, hints[key]) for key in parameters if key not in sections or hints[key] is KnownGpu)


def ways(name: str, value: str, given: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the arguments to ask the fix with: all hostile, and each choice that it has."""
    own = arguments_of(name)
    every = {key: hostile(kind, value, given, key) for key, kind in own}
    every = {key: item for key, item in every.items() if key not in GIVEN_BY_CODE} | {
        key: GIVEN_BY_CODE[key] for key in every if key in GIVEN_BY_CODE
    }
    yield every
    for key, kind in own:
        choices = (*CHOICES.get(key, ()), *((ARGUMENTS[key],) if key in ARGUMENTS else ()))
        yield from ({**every, key: choice} for choice in choices if isinstance(choice, str) or kind is not str)


def remedies(machine: str, value: str) -> Iterator[tuple[str, Remedy]]:
    """Yield each remedy that any fix has on this machine, with the name of the fix."""
    facts, given = machine_of(machine, value), DISCRIMINATORS[machine]
    for name in every_fix():
        for arguments in ways(name, value, given):
            try:
                made = remedies_of((Fix(name, **arguments),), facts)
            except Exception:
                if name in WITH_NUMBERS:
                    continue
                raise
            yield from ((name, remedy) for remedy in facts.call(fitted, remedies=made))
