"""Environments that are not gpudoctor's to change. Each refusal is one line: why, and the right way."""

import os
import re
import shutil
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from gpudoctor.fixing.environment import Inventory
from gpudoctor.fixing.programs import Refused
from gpudoctor.fixing.sizes import in_words
from gpudoctor.remedies.commands import quote

SYSTEM_PREFIXES = ("/usr", "/", "/System/Library", "/Library/Developer")
LOCKS = {
    "uv.lock": "uv add",
    "poetry.lock": "poetry add",
    "pdm.lock": "pdm add",
    "pixi.lock": "pixi add --pypi",
}
"""A project's lock file, and the command that changes it together with the environment."""

MARGIN = 1.1
"""Of the space that a change needs, because folders and journals take some too."""


def refuse_environment(inventory: Inventory, commands: Sequence[str] = (), tool: str = "") -> None:
    """Refuse an environment that something else manages, or that this user must not change.

    commands: of the remedy. tool: of the project, if it makes the change itself.

    Raises:
        Refused: it is one.
    """
    prefix, new = inventory.prefix, "python3 -m venv .venv, then gpudoctor fix --python .venv/bin/python"
    if inventory.conda:
        refuse_conda(inventory)
    if inventory.externally_managed:
        raise Refused(f"the distribution forbids pip in {prefix} (PEP 668): create an environment with {new}")
    if not inventory.is_virtual and prefix in SYSTEM_PREFIXES:
        raise Refused(f"{inventory.executable} is the system's own Python: create an environment with {new}")
    _refuse_owner(inventory)
    _refuse_outside(inventory)
    _refuse_tools(prefix)
    _refuse_lock(prefix, commands, tool)


def refuse_conda(inventory: Inventory) -> None:
    """Raise Refused for conda's base environment, and for another one if conda installed what will be changed."""
    if inventory.conda_base:
        raise Refused(
            f"{inventory.prefix} is conda's base environment: create one with conda create --name gpu python,"
            " then gpudoctor fix --python with its interpreter"
        )


def _refuse_owner(inventory: Inventory) -> None:
    if not hasattr(os, "geteuid"):
        return
    for place in (inventory.prefix, *inventory.folders):
        with suppress(FileNotFoundError):
            owner = os.stat(place).st_uid
            if owner != os.geteuid():
                raise Refused(f"{place} belongs to {_user(owner)}: run gpudoctor fix as that user")
            if os.lstat(place).st_uid not in (0, os.geteuid()):
                raise Refused(f"{place} is a link of another user: name the environment's own path")
            if not os.access(place, os.W_OK | os.X_OK, effective_ids=os.access in os.supports_effective_ids):
                raise Refused(f"{place} cannot be written: make it writable, or create your own environment")


def _refuse_outside(inventory: Inventory) -> None:
    """Refuse packages that are outside the environment: only what is inside is recorded, and can be restored."""
    prefix = os.path.realpath(inventory.prefix)
    for folder in inventory.folders:
        real = os.path.realpath(folder)
        if not Path(real).is_relative_to(prefix):  # on Windows it may be another drive
            raise Refused(
                f"the packages of {inventory.prefix} are outside it, in {real}, and a fix of them could not be undone:"
                " create an environment without that link"
            )


def _user(number: int) -> str:
    with suppress(ImportError, KeyError):
        import pwd

        return f"the user {pwd.getpwuid(number).pw_name}"
    return f"the user with the number {number}"


def _refuse_tools(prefix: str) -> None:
    if os.path.isfile(os.path.join(prefix, "uv-receipt.toml")):
        name = os.path.basename(prefix)
        raise Refused(f"{prefix} is a tool of uv, which recreates it: uv tool install --force {name} --with PACKAGE")
    if os.path.isfile(os.path.join(prefix, "pipx_metadata.json")):
        name = os.path.basename(prefix)
        raise Refused(f"{prefix} is an application of pipx: pipx inject --force {name} PACKAGE")


def _refuse_lock(prefix: str, commands: Sequence[str], tool: str) -> None:
    """Refuse an environment that a lock file next to it decides: the next sync would take the change back."""
    above = os.path.dirname(prefix)
    for name, command in LOCKS.items():
        of_pixi = name == "pixi.lock" and os.path.normpath(above).split(os.sep)[-2:] == [".pixi", "envs"]
        lock = os.path.join(os.path.dirname(os.path.dirname(above)) if of_pixi else above, name)
        if os.path.isfile(lock) and name != f"{tool}.lock":
            own = [line for line in commands if line.startswith(name.partition(".")[0] + " ")]
            raise Refused(
                f"{lock} decides what is in {prefix}, and the next sync would take the change back: change the lock"
                f" instead, with {' && '.join(own) or ' '.join((command, *_requirements(commands)))}"
            )


def _requirements(commands: Sequence[str]) -> list[str]:
    """Return the pinned requirements, quoted, that the commands install: "torch==2.13.0+cu130"."""
    words = [word for line in commands for word in line.replace("'", "").split() if " install " in line]
    return [quote(word) for word in words if re.fullmatch(r"[\w.-]+(?:\[[\w,.-]+\])?==[\w.+!-]+", word)]


def refuse_unrecordable(inventory: Inventory, names: Iterable[str]) -> None:
    """Refuse to change a distribution that cannot be restored.

    Raises:
        Refused: it has no list of its files, conda installed it, or one of its places is a link.
    """
    for item in inventory.own({*names}):
        if item.installer == "conda":
            raise Refused(f"conda installed {item.name}: run the commands of gpudoctor check, which use conda")
        if item.files is None and item.name in inventory.twins():
            versions = inventory.installed_as(item.name)
            raise Refused(
                f"{item.name} is installed twice ({versions}), and {quote(item.info)} has no list of its files"
                " (RECORD): remove that folder, then run gpudoctor fix again"
            )
        if item.files is None:
            raise Refused(f"{item.name} {item.version} has no list of its files (RECORD): reinstall it with pip first")
        for top in sorted({path.split("/")[0] for path in item.files} - {"..", ""}):
            path = os.path.join(item.folder, top)
            if os.path.islink(path):
                raise Refused(f"{path} is a link, and what it leads to is not the environment's: remove the link first")


def refuse_if_used(inventory: Inventory, tops: Iterable[str]) -> None:
    """Refuse to change files that a process has loaded. tops: folders and files of the environment.

    Raises:
        Refused: a process of this user has one of them in memory.
    """
    users = sorted({*_users([os.path.realpath(top) for top in tops])})
    if users:
        shown = ", ".join(f"{name} (process {pid})" for pid, name in users[:3])
        raise Refused(f"{shown} uses the packages of {inventory.prefix}: end it, then run gpudoctor fix again")


def _users(tops: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yield the processes that have a file below `tops` mapped, also a deleted one. Linux only."""
    with suppress(OSError):
        for entry in os.listdir("/proc"):
            if not entry.isdecimal() or int(entry) == os.getpid():
                continue
            with suppress(OSError):
                paths = _mapped(Path("/proc", entry, "maps"))
                if any(path == top or path.startswith(f"{top}{os.sep}") for path in paths for top in tops):
                    yield int(entry), Path("/proc", entry, "comm").read_text(errors="replace").strip()


def _mapped(path: Path) -> set[str]:
    with path.open(encoding="utf-8", errors="replace") as lines:
        columns = (line.split(None, 5) for line in lines)
        return {row[5].strip().removesuffix(" (deleted)") for row in columns if len(row) == 6}


def refuse_if_full(folder: str, needed_bytes: int) -> None:
    """Refuse a change for which the disk has too little space. Raises Refused."""
    free, needed = shutil.disk_usage(folder).free, int(needed_bytes * MARGIN)
    if free < needed:
        raise Refused(f"{quote(folder)} has {in_words(free)} free, and the change needs {in_words(needed)}: make room")


def is_own_folder(path: Path) -> bool:
    """Return whether it is a folder of this user that nobody else can write to, and not a link."""
    try:
        state = path.lstat()
    except OSError:
        return False
    own = not hasattr(os, "geteuid") or (state.st_uid == os.geteuid() and not state.st_mode & 0o022)
    return stat.S_ISDIR(state.st_mode) and own
