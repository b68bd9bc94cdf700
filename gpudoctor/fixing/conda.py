"""conda in an environment of its own: planned by its dry run, applied by the commands that the check prints."""

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gpudoctor.fixing.actions import Action
from gpudoctor.fixing.environment import Inventory
from gpudoctor.fixing.programs import Refused, run_to_end
from gpudoctor.fixing.record import Scope
from gpudoctor.fixing.resolution import Change, Resolution
from gpudoctor.fixing.tools import CONDA_PACKAGE, Tool


class Conda(Tool):
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
            after.update({f"{CONDA_PACKAGE}{row['name']}": None for row in _rows(found, "UNLINK")})
            after.update({f"{CONDA_PACKAGE}{row['name']}": _version(row) for row in _rows(found, "LINK")})
            sizes.update(
                {f"{CONDA_PACKAGE}{row['name']}": row["size"] for row in _rows(found, "FETCH") if row.get("size")}
            )
        changes = tuple(
            Change(name=name, before=self.inventory.installed_as(name), after=version, size_bytes=sizes.get(name))
            for name, version in after.items()
        )
        return Resolution(pins=(), removes=(), changes=changes, commands=tuple(action.command for action in actions))

    def command(self, command: Sequence[str]) -> list[str]:
        """Return a printed command as it is run. Raises Refused: conda is not there."""
        if self._program is None:
            raise Refused("conda made this environment and is not on PATH: activate it, or add conda's folder to PATH")
        return [self._program, *command[1:]]

    def _dry_run(self, command: Sequence[str]) -> list[Mapping[str, Any]]:
        """Return the actions of a dry run. Source: https://github.com/conda/conda/issues/6641"""
        out, error, _ = run_to_end([*self.command(command), "--dry-run", "--json"], self.environ)
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

    def whole_scope(self) -> Scope:
        """Return the whole environment: conda decides what it changes."""
        root = os.path.realpath(self.inventory.prefix)
        return Scope(prefix=Path(root), roots=(".",), folders=self.package_folders(root), links=True)


def _rows(actions: Sequence[Mapping[str, Any]], kind: str) -> list[Mapping[str, Any]]:
    return [row for action in actions for row in action.get(kind, []) if isinstance(row, dict) and "name" in row]


def _version(row: Mapping[str, Any]) -> str:
    """Return the version as conda writes it in a specification: "2.5.1=cuda126_py311"."""
    return f"{row['version']}={row.get('build_string') or row.get('build')}"
