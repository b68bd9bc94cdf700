"""The commands of a remedy as actions. Only what is understood as a whole is ever run, and never by a shell."""

import os
import re
import shlex
from typing import Literal

from packaging.requirements import InvalidRequirement, Requirement

from gpudoctor.data.torch_builds import INDEX
from gpudoctor.model import Remedy
from gpudoctor.model.record import record

Kind = Literal["environment", "project", "system"]

INDEXES = (INDEX, "https://data.pyg.org/whl")
"""Those that the tables of remedies name. Any other index comes from the installer's own configuration."""

_VALUES = ("--index-url", "--extra-index-url", "--find-links")
_FORCED = ("--force-reinstall", "--reinstall")
_CONDA_SPEC = r"(?a)[a-z0-9_][\w.-]*(?:[=<>!~]=?[\w.*+-]+){0,2}"
_VERIFIES = ("nvidia-smi", "gpudoctor")


@record
class Action:
    """One command. removes: names to uninstall. requirements: what to install.

    index: options that name an index. forced: what is already satisfied is installed again. upgrade: also newer ones.
    alone: without what they need. tool: "" for wheels; else the project's tool, which runs `command` as it is.
    """

    removes: tuple[str, ...] = ()
    requirements: tuple[str, ...] = ()
    index: tuple[str, ...] = ()
    forced: bool = False
    upgrade: bool = False
    alone: bool = False
    tool: str = ""
    command: tuple[str, ...] = ()


def kind_of(remedy: Remedy, python: str) -> Kind:
    """Return what a remedy changes: the environment of `python`, a project's files, or something else."""
    if any(
        re.match(r"(uv|poetry|pdm|pixi) (add|source add|lock|sync|update|remove|reinstall)\b", c)
        for c in remedy.commands
    ):
        return "project"
    return "environment" if not remedy.needs and actions_of(remedy, python) else "system"


def actions_of(remedy: Remedy, python: str) -> tuple[Action, ...]:
    """Return what the commands do to the environment of `python`; () if one of them is anything else."""
    found: list[Action] = []
    for command in remedy.commands:
        words = _words(command, python)
        if not words:
            return ()
        if _only_shows(words, python):
            continue
        action = _action(words, python)
        if action is None:
            return ()
        found.append(action)
    return tuple(found) if len({action.tool for action in found}) == 1 else ()


def _words(command: str, python: str) -> list[str]:
    if re.match(r"[A-Za-z]:\\|\.[\\/]?\w*\\", python):  # of PowerShell, where a backslash is one
        words = re.findall(r"\"([^\"]*)\"|'([^']*)'|(\S+)", command.removeprefix("& "))
        return ["".join(parts) for parts in words]
    try:
        return shlex.split(command)
    except ValueError:
        return []


def _is_python(word: str, python: str) -> bool:
    return os.path.expanduser(word) == os.path.expanduser(python)


def _only_shows(words: list[str], python: str) -> bool:
    if words[0] in _VERIFIES or (
        words[:2] in (["uv", "run"], ["poetry", "run"], ["pixi", "run"]) and "-c" in words[2:-1]
    ):
        return True
    return _is_python(words[0], python) and (words[1:2] == ["-c"] or words[1:4] == ["-m", "pip", "check"])


def _action(words: list[str], python: str) -> Action | None:
    """Return what a command of pip or uv does to this environment; None if it is another one, or unknown."""
    if len(words) > 4 and _is_python(words[0], python) and words[1:3] == ["-m", "pip"]:
        verb, rest = words[3], words[4:]
    elif len(words) > 5 and words[:2] == ["uv", "pip"] and words[3] == "--python" and _is_python(words[4], python):
        verb, rest = words[2], words[5:]
    else:
        return _of_project(words) or _of_conda(words, python)
    if verb == "uninstall":
        names = tuple(word for word in rest if word not in ("-y", "--yes"))
        return Action(removes=names) if names and all(map(_is_name, names)) else None
    return _install(rest) if verb == "install" else None


def _install(rest: list[str]) -> Action | None:
    index: list[str] = []
    requirements: list[str] = []
    forced = upgrade = alone = False
    while rest:
        word = rest.pop(0)
        if word in _VALUES and rest and _is_index(rest[0]):
            index += [word, rest.pop(0)]
        elif word in _FORCED:
            forced = True
        elif word == "--upgrade":
            upgrade = True
        elif word == "--no-deps":
            alone = True
        elif word == "--no-cache-dir":
            continue
        elif is_requirement(word):
            requirements.append(word)
        else:  # it compiles, or its meaning is unknown
            return None
    if not requirements:
        return None
    return Action(requirements=tuple(requirements), index=tuple(index), forced=forced, upgrade=upgrade, alone=alone)


def _of_project(words: list[str]) -> Action | None:
    """Return what a command of a project's tool does; None if it is another one, or unknown."""
    tool, command = words[0], tuple(words)
    if tool == "pixi":
        return _of_pixi(words)
    if re.fullmatch(r"poetry source add --priority=explicit [\w.-]+ \S+", " ".join(words)) and _is_index(words[-1]):
        return Action(tool=tool, command=command)
    if tool not in ("uv", "poetry") or words[1:2] != ["add"]:
        return None
    rest = words[2:]
    if tool == "uv" and rest[:1] == ["--index"]:
        name, _, address = "".join(rest[1:2]).partition("=")
        rest = rest[2:] if _is_name(name) and _is_index(address) else []
    elif tool == "poetry" and rest[:1] == ["--source"]:
        rest = rest[2:] if _is_name("".join(rest[1:2])) else []
    fits = bool(rest) and all(map(is_requirement, rest))
    return Action(tool=tool, command=command, requirements=tuple(rest)) if fits else None


def _of_pixi(words: list[str]) -> Action | None:
    """Return what a command of pixi does to the project; None if it is another one, or unknown."""
    verb, rest, command = words[1:2], words[2:], tuple(words)
    if rest[:1] != ["--pypi"]:
        fits = bool(rest) and all(re.fullmatch(_CONDA_SPEC, word) for word in rest)
        return Action(tool="pixi", command=command) if fits and verb in (["add"], ["remove"]) else None
    rest = rest[1:]
    if verb == ["remove"]:
        fits = bool(rest) and all(map(_is_name, rest))
        return Action(tool="pixi", command=command, removes=tuple(rest)) if fits else None
    if rest[:1] == ["--index"]:
        rest = rest[2:] if _is_index("".join(rest[1:2])) else []
    fits = bool(rest) and all(map(is_requirement, rest)) and verb == ["add"]
    return Action(tool="pixi", command=command, requirements=tuple(rest)) if fits else None


def _of_conda(words: list[str], python: str) -> Action | None:
    """Return what a command of conda does to this environment; None if it is another one, or unknown."""
    if words[0] != "conda" or words[1:2] not in (["install"], ["remove"]) or words[2:4] != ["--yes", "--prefix"]:
        return None
    prefix = os.path.dirname(os.path.dirname(os.path.expanduser(python)))
    rest = words[5:]
    if words[1] == "install" and rest[:1] in (["--channel"], ["-c"]):
        rest = rest[2:] if rest[1:2] == ["conda-forge"] else []
    fits = bool(rest) and all(re.fullmatch(_CONDA_SPEC, word) for word in rest)
    is_here = prefix and os.path.expanduser(words[4]) == prefix
    return Action(tool="conda", command=tuple(words)) if fits and is_here else None


def is_requirement(text: str) -> bool:
    """Return whether it is a name with extras and versions: no option, no address, no path, no condition."""
    if not re.fullmatch(r"(?a)[A-Za-z0-9][\w.\[\], <>=!~+*-]*", text):
        return False
    try:
        return Requirement(text).url is None
    except InvalidRequirement:
        return False


def _is_name(text: str) -> bool:
    return bool(re.fullmatch(r"(?a)[A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?", text))


def _is_index(address: str) -> bool:
    return any(address == index or address.startswith(f"{index}/") for index in INDEXES) and ".." not in address
