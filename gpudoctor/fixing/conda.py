"""conda in an environment of its own: planned by its dry run, applied by the commands that the check prints."""

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gpudoctor.fixing.actions import Action
from gpudoctor.fixing.environment import Inventory, broken_requirements, read_inventory
from gpudoctor.fixing.installers import Change, Installer, Resolution
from gpudoctor.fixing.programs import Failed, Refused, run, run_to_end
from gpudoctor.fixing.record import Scope

PREFIX = "conda:"
"""Begins the name of a conda package where it stands among distributions of Python."""


class Conda(Installer):
    """conda, on the environment that its commands name. The whole environment is recorded, by links."""

    name = "conda"

    def __init__(self, inventory: Inventory, environ: Mapping[str, str]) -> None:
        super().__init__(inventory, environ)
        self._program = environ.get("CONDA_EXE") or shutil.which("conda", path=environ.get("PATH"))

    def resolve(self, actions: Sequence[Action]) -> Resolution:
        """Return what the commands change. Raises Refused: conda finds no solution, or is not there."""
        after: dict[str, str | None] = {}
        sizes: dict[str, int] = {}
        for action in actions:
            found = self._dry_run(action.command)
            after.update({f"{PREFIX}{row['name']}": None for row in _rows(found, "UNLINK")})
            after.update({f"{PREFIX}{row['name']}": _version(row) for row in _rows(found, "LINK")})
            sizes.update({f"{PREFIX}{row['name']}": row["size"] for row in _rows(found, "FETCH") if row.get("size")})
        changes = tuple(
            Change(name=name, before=self.inventory.version_of(name), after=version, size_bytes=sizes.get(name))
            for name, version in after.items()
        )
        return Resolution(pins=(), removes=(), changes=changes, commands=tuple(action.command for action in actions))

    def _command(self, command: Sequence[str]) -> list[str]:
        if self._program is None:
            raise Refused("conda made this environment and is not on PATH: activate it, or add conda's folder to PATH")
        return [self._program, *command[1:]]

    def _dry_run(self, command: Sequence[str]) -> list[Mapping[str, Any]]:
        """Return the actions of a dry run. Source: https://github.com/conda/conda/issues/6641"""
        out, error, _ = run_to_end([*self._command(command), "--dry-run", "--json"], self.environ)
        try:
            content = json.loads(out)
            actions = content.get("actions", [])
            if actions or content.get("success"):
                return actions if isinstance(actions, list) else [actions]
            said = str(content.get("message") or content.get("error"))
        except (ValueError, AttributeError):
            said = error
        line = next((line.strip() for line in said.splitlines() if line.strip()), "it does not say why")
        raise Refused(f"conda finds no solution: {line}")

    def fetch(self, resolution: Resolution, folder: Path) -> None:
        """Do nothing: conda fetches before it changes the environment."""

    def apply(self, resolution: Resolution, folder: Path) -> None:  # noqa: ARG002 - nothing was fetched
        """Run the commands. Raises Failed."""
        try:
            for command in resolution.commands:
                run(self._command(command), self.environ, self.lock)
        except Refused as error:
            raise Failed(str(error)) from None

    def broken(self) -> set[str]:
        """Return what does not fit in the environment, a sentence each."""
        now = read_inventory(self.inventory.executable)
        return broken_requirements(now, {item.name: item.version for item in now.distributions})

    def whole_scope(self) -> Scope:
        """Return the whole environment: conda decides what it changes."""
        root = os.path.realpath(self.inventory.prefix)
        packages = tuple(os.path.relpath(os.path.realpath(folder), root) for folder in self.inventory.folders)
        return Scope(prefix=Path(root), roots=(".",), folders=packages, links=True)


def _rows(actions: Sequence[Mapping[str, Any]], kind: str) -> list[Mapping[str, Any]]:
    return [row for action in actions for row in action.get(kind, []) if isinstance(row, dict) and "name" in row]


def _version(row: Mapping[str, Any]) -> str:
    """Return the version as conda writes it in a specification: "2.5.1=cuda126_py311"."""
    return f"{row['version']}={row.get('build_string') or row.get('build')}"
