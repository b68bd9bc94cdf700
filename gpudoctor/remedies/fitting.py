"""Adapt remedies to the machine: its shell, container names, and the folder to run commands in."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from gpudoctor.model import Attempts, Container, Place, Python, Remedy, Symptom, System
from gpudoctor.model.codec import json_next_to
from gpudoctor.remedies.commands import REFUSED, is_windows, quote_name

# Commands that change nothing: the last command of a remedy verifies it.
_VERIFIES = r"nvidia-smi(?! -)|printenv |gpudoctor |(?:& )?(?:\"[^\"]+\"|\S+)(?: -s)? -c |docker run "
_LONGEST_SHOWN = 80  # characters of a value that must not be in a command
_OF_CONDA = (
    r"conda (install|remove)(?: --yes)?(?: --(?:prefix|name) (?:'[^']*'|\S+))?(?: (?:--channel|-c) conda-forge)?"
)
_RELATIVE = r"(?:\.[\\/])?([\w.-]+)[\\/]"

NEEDS_ROOT = "needs root"


def fitted(  # noqa: PLR0913
    remedies: Sequence[Remedy],
    *,
    attempts: Attempts,
    container: Container,
    place: Place,
    python: Python,
    system: System,
    symptoms: tuple[Symptom, ...] | None = None,
) -> tuple[Remedy, ...]:
    """Return the remedies with commands for that machine; those that were tried or cannot be done are last."""
    os_name = "windows" if place.is_windows or is_windows(python, system) else system.os
    if place.is_tegra:
        os_name = "tegra"
    podman = "podman" in (container.engine, system.container)
    remedies = list(map(_without_refused, remedies))
    if python.project == "pixi":
        remedies = list(map(_for_pixi, remedies))
    elif any(symptom.kind == "micromamba-shown" for symptom in symptoms or ()):
        remedies = list(map(_for_micromamba, remedies))
    shells = (os_name or "", *(("cmd",) if os_name == "windows" and system.shell == "cmd" else ()))
    found = [_named(_in_shells(remedy, shells, place), container, podman) for remedy in remedies]
    lost = [_is_lost(old, new) for old, new in zip(remedies, found, strict=True)]
    folder = re.match(_RELATIVE, python.executable or "")
    if folder:
        found = [_in_folder(remedy, python.executable or "", folder[1]) for remedy in found]
    if any(symptom.kind == "python-run-in-container" for symptom in symptoms or ()):
        found = [_in_image(remedy) for remedy in found]
    ordered = untried_first([found[n] for n in sorted(range(len(found)), key=lost.__getitem__)], attempts)
    without_root = any(re.search(pattern, NEEDS_ROOT) for pattern in attempts.commands)
    return tuple(map(_by_administrator, ordered)) if without_root else ordered


def _in_image(remedy: Remedy) -> Remedy:
    """Return the remedy, for packages that are in a container and not on its host."""
    if not any(" pip install " in command or " uv pip " in command for command in remedy.commands):
        return remedy
    return replace(
        remedy, summary=f"In the container's image, not on its host (RUN in the Dockerfile): {remedy.summary}"
    )


def _by_administrator(remedy: Remedy) -> Remedy:
    """Return the remedy, for a user without administrator rights."""
    return replace(remedy, summary=f"Ask an administrator. {remedy.summary}") if "root" in remedy.needs else remedy


def _without_refused(remedy: Remedy) -> Remedy:
    """Return the remedy, without its commands if one has a value that may only be shown as text."""
    if all(command.isprintable() for command in remedy.commands):
        return remedy
    values = re.findall(f"{REFUSED}([^{REFUSED}]*){REFUSED}", "".join(remedy.commands))
    named = " and ".join(
        f'"{"".join(c if c.isprintable() else " " for c in value[:_LONGEST_SHOWN]).strip()}"'
        for value in dict.fromkeys(values)
    )
    text = f"{remedy.summary}; no command is shown, because {named or 'a value'} is not a valid name or path"
    return replace(remedy, commands=(), summary=text)


def _for_pixi(remedy: Remedy) -> Remedy:
    """Return the remedy with pixi's commands instead of conda's: conda must not change pixi's environments.

    Source: https://pixi.prefix.dev/latest/workspace/environment/
    """
    verbs = {"install": "add", "remove": "remove"}
    commands = (
        re.sub(rf"^{_OF_CONDA}(?= [^-\s])", lambda match: f"pixi {verbs[match[1]]}", command)
        for command in remedy.commands
    )
    commands = (re.sub(rf"^{_OF_CONDA} --force-reinstall ([\w.-]+)=\S+$", r"pixi reinstall \2", c) for c in commands)
    return replace(remedy, commands=tuple(commands))


def _for_micromamba(remedy: Remedy) -> Remedy:
    """Return the remedy with micromamba, which takes conda's options and stands where conda may be missing."""
    return replace(remedy, commands=tuple(re.sub(r"^conda (?=[a-z])", "micromamba ", c) for c in remedy.commands))


def _is_lost(old: Remedy, new: Remedy) -> bool:
    """Return whether no changing command is left because all are for another system."""
    changing = [command for command in new.commands if not re.match(r"(?:sudo )?reboot$", command)]
    return len(new.commands) < len(old.commands) and all(re.match(_VERIFIES, command) for command in changing)


def untried_first(remedies: Sequence[Remedy], attempts: Attempts) -> tuple[Remedy, ...]:
    """Return the remedies; those that the user already tried or cannot do are last."""

    def tried(remedy: Remedy) -> bool:
        changing = [command for command in remedy.commands if not re.match(_VERIFIES, command)] or [remedy.summary]
        needs = [f"needs {need}" for need in remedy.needs]
        excluded = [need for p in attempts.commands for need in needs if re.search(p, need)]
        named = any(re.match(p, remedy.summary) for p in attempts.commands)
        return bool(excluded) or named or all(any(re.search(p, text) for p in attempts.commands) for text in changing)

    return tuple(sorted(remedies, key=tried))


def _in_shells(remedy: Remedy, shells: Sequence[str], place: Place) -> Remedy:
    for shell in shells:
        remedy = _for_shell(remedy, shell, place)
    return remedy


def _for_shell(remedy: Remedy, system: str, place: Place) -> Remedy:
    """Return the remedy without commands that the system's shell lacks, and others translated to that shell."""
    rules = json_next_to(__file__, "shells").get(system)
    if rules is None or place.in_wsl:
        return remedy
    summary = remedy.summary
    for words, others in rules.get("say", ()):
        summary = summary.replace(words, others)
    return replace(remedy, summary=summary, commands=tuple(_translated(remedy.commands, rules)))


def _translated(commands: Sequence[str], rules: dict[str, Any]) -> Iterator[str]:
    for whole in commands:
        # "sudo tee" after "&&" belongs to the part before it, so all parts of a command are kept or removed.
        parts = whole.split(rules["join"]) if "join" in rules and " -c " not in whole else [whole]
        for pattern, new in rules["change"]:
            parts = [re.sub(pattern, new, part) for part in parts]
        inside = re.match(r"(?:wsl|docker|kubectl|podman|srun)\b", whole)  # the rest is for a Linux shell
        if inside or not any(re.search(rules["drop"], part) for part in parts):
            yield from parts


def _named(remedy: Remedy, container: Container, podman: bool) -> Remedy:
    """Return the remedy with real names instead of CONTAINER and the like, or with a first command that shows them."""
    for word, row in json_next_to(__file__, "shells")["names"].items():
        if not any(re.search(rf"\b{word}\b", command) for command in remedy.commands):
            continue
        name = quote_name(getattr(container, row.get("fact", ""), None) or "")
        if REFUSED not in name:
            commands = tuple(command.replace(word, name) for command in remedy.commands)
            remedy = replace(remedy, commands=commands)
        else:
            first = next(n for n, command in enumerate(remedy.commands) if re.search(rf"\b{word}\b", command))
            commands = (*remedy.commands[:first], row["show"], *remedy.commands[first:])
            remedy = replace(remedy, commands=commands, summary=f"{remedy.summary.rstrip('.')}. {row['say']}")
    if podman:
        remedy = replace(
            remedy, commands=tuple(re.sub(r"^docker (?!comp|cont)", "podman ", c) for c in remedy.commands)
        )
    return remedy


def _in_folder(remedy: Remedy, executable: str, folder: str) -> Remedy:
    """Return the remedy with the folder that a relative interpreter path starts from."""
    if not any(executable in command for command in remedy.commands):
        return remedy
    return replace(remedy, summary=f"{remedy.summary}; run this in the folder that contains {folder}")
