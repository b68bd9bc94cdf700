"""Projects of pixi: its own command changes the project's files and its default environment.

Source: https://pixi.prefix.dev/latest/reference/cli/pixi/add/ and the same for remove and list; for the places of the
files https://pixi.prefix.dev/latest/workspace/environment/
"""

import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name

from gpudoctor.fixing.environment import Inventory
from gpudoctor.fixing.programs import Refused, run
from gpudoctor.fixing.projects import Project
from gpudoctor.fixing.record import Scope
from gpudoctor.fixing.resolution import Change
from gpudoctor.fixing.tools import CONDA_PACKAGE

_LIST = ("pixi", "list", "--json", "--frozen", "--no-install")
_SETTINGS = os.path.join(".pixi", "config.toml")


class PixiProject(Project):
    """A project of pixi, whose environment is `.pixi/envs/default`. The whole environment is recorded."""

    name, depth = "pixi", 3

    def __init__(self, inventory: Inventory, environ: Mapping[str, str]) -> None:
        super().__init__(inventory, environ)
        if os.path.isfile(os.path.join(self.folder, "pixi.toml")):
            self.files = ("pixi.toml", "pixi.lock")

    def _copy(self, copy: Path) -> None:
        super()._copy(copy)
        if os.path.isfile(os.path.join(self.folder, _SETTINGS)):
            (copy / ".pixi").mkdir()
            shutil.copyfile(os.path.join(self.folder, _SETTINGS), copy / _SETTINGS)

    def _planned(self, commands: Sequence[Sequence[str]], copy: str) -> Iterator[Change]:
        if os.path.basename(self.inventory.prefix) != "default":
            raise Refused(
                f"{self.inventory.prefix} is not pixi's default environment, and pixi add changes that one: change its"
                f" feature in {self.files[0]}, then run pixi install"
            )
        locked = self._locked(copy)
        for command in commands:
            run([*command, "--no-install"], self.environ, folder=copy)
        after = self._locked(copy)
        for name, row in after.items():
            yield self._change(name, _version(row), None if row == locked.get(name) else row.get("size_bytes"))
        yield from (self._change(name, None) for name in locked if name not in after)

    def _locked(self, copy: str) -> dict[str, Mapping[str, Any]]:
        """Return what the lock file has for the default environment. Its names are those of the inventory."""
        try:
            rows: list[Mapping[str, Any]] = json.loads(run(_LIST, self.environ, folder=copy))
            return {_name(row): row for row in rows}
        except (ValueError, KeyError, TypeError):
            raise Refused("this version of pixi does not list its packages as JSON: update pixi") from None

    def whole_scope(self) -> Scope:
        """Return the project's files and its whole environment, copied: pixi writes some files in place."""
        root = os.path.realpath(self.folder)
        prefix = os.path.relpath(os.path.realpath(self.inventory.prefix), root)
        return Scope(prefix=Path(root), roots=(*self.files, prefix), folders=self.package_folders(root))


def _name(row: Mapping[str, Any]) -> str:
    return f"{CONDA_PACKAGE}{row['name']}" if row["kind"] == "conda" else canonicalize_name(row["name"])


def _version(row: Mapping[str, Any]) -> str:
    return f"{row['version']}={row['build']}" if row["kind"] == "conda" else str(row["version"])
