"""uv and poetry in a project whose lock file decides what is installed: they change its files and its environment."""

import difflib
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from packaging.utils import canonicalize_name

from gpudoctor.fixing.actions import Action
from gpudoctor.fixing.environment import Inventory, broken_requirements, read_inventory
from gpudoctor.fixing.installers import Change, Installer, Pin, Resolution
from gpudoctor.fixing.programs import Failed, Refused, run, run_to_end
from gpudoctor.fixing.record import Scope

PROJECT_FILE = "pyproject.toml"
_UV_LINE = r"(?m)^ ([-+]) ([\w.-]+)==(\S+)"
_POETRY_LINE = (
    r"(?m)^ +[-•] (?:(?P<verb>Installing|Removing) (?P<name>[\w.-]+) \((?P<version>[^\s)]+)[^)]*\)"
    r"|(?:Updating|Downgrading) (?P<changed>[\w.-]+) \((?P<old>\S+)[^)]* -> (?P<new>[^\s)]+)[^)]*\))(?!.*Skipped)"
)


class Project(Installer):
    """A project and the tool that changes it. The plan is made in a copy of its files; its folders are linked there."""

    def __init__(self, tool: str, inventory: Inventory, environ: Mapping[str, str]) -> None:
        named = {"UV_PROJECT_ENVIRONMENT": inventory.prefix, "VIRTUAL_ENV": inventory.prefix}
        super().__init__(inventory, {**environ, **named, "POETRY_NO_INTERACTION": "1"})
        self.name, self.folder = tool, os.path.dirname(inventory.prefix)
        self.files = (PROJECT_FILE, f"{tool}.lock")

    def resolve(self, actions: Sequence[Action]) -> Resolution:
        """Return what the commands change, as the tool says for a copy of the project.

        Raises:
            Refused: the project is not one of this tool, or the tool finds no versions that go together.
        """
        if os.path.realpath(self.folder) != os.path.dirname(os.path.realpath(self.inventory.prefix)):
            raise Refused(f"{self.inventory.prefix} is a link: name the interpreter below the folder that it leads to")
        missing = [name for name in self.files if not os.path.isfile(os.path.join(self.folder, name))]
        if missing:
            raise Refused(f"{self.folder} has no {missing[0]}: {self.name} has no project there to change")
        commands = tuple(action.command for action in actions)
        with tempfile.TemporaryDirectory(prefix="gpudoctor-") as copy:
            self._copy(Path(copy))
            try:
                said = "".join(self._try(commands, copy))
            except Failed as error:
                raise Refused(f"{self.name} finds no versions that go together: {error}") from None
            diff = self._diff(Path(copy))
        changes = tuple(self._changes(said))
        pins = tuple(Pin(name=change.name, version=change.after) for change in changes if change.after is not None)
        removes = tuple(change.name for change in changes if change.after is None)
        return Resolution(pins=pins, removes=removes, changes=changes, diff=diff, commands=commands)

    def _copy(self, copy: Path) -> None:
        for entry in os.scandir(self.folder):
            if entry.name in self.files:
                shutil.copyfile(entry.path, copy / entry.name)
            elif os.path.realpath(entry.path) != os.path.realpath(self.inventory.prefix):
                os.symlink(entry.path, copy / entry.name)

    def _try(self, commands: Sequence[Sequence[str]], copy: str) -> Iterator[str]:
        """Yield what the tool says of the changes to the environment, while it changes the files of the copy."""
        if self.name == "uv":
            for command in commands:
                run([*command, "--no-sync"], self.environ, folder=copy)
            options = ("--inexact", "--dry-run", "--frozen", "--no-install-workspace")
            _, said, _ = run_to_end(["uv", "sync", *options], self.environ, folder=copy)
            yield said
            return
        for command in commands:
            if command[1] != "source":
                yield run([*command, "--dry-run", "--no-ansi"], self.environ, folder=copy)
            run([*command, *(["--lock"] if command[1] != "source" else [])], self.environ, folder=copy)

    def _changes(self, said: str) -> Iterator[Change]:
        after: dict[str, str | None] = {}
        if self.name == "uv":
            for sign, name, version in re.findall(_UV_LINE, said):
                if sign == "+" or canonicalize_name(name) not in after:
                    after[canonicalize_name(name)] = version if sign == "+" else None
        else:
            for row in re.finditer(_POETRY_LINE, said):
                name = canonicalize_name(row["name"] or row["changed"])
                after[name] = None if row["verb"] == "Removing" else row["version"] or row["new"]
        for name, version in after.items():
            if self.inventory.version_of(name) != version:
                yield Change(name=name, before=self.inventory.version_of(name), after=version)

    def _diff(self, copy: Path) -> tuple[str, ...]:
        before, after = (
            Path(place, PROJECT_FILE).read_text(encoding="utf-8").splitlines() for place in (self.folder, copy)
        )
        return tuple(difflib.unified_diff(before, after, f"a/{PROJECT_FILE}", f"b/{PROJECT_FILE}", lineterm=""))

    def fetch(self, resolution: Resolution, folder: Path) -> None:
        """Do nothing: the tool fetches when it changes the environment."""

    def apply(self, resolution: Resolution, folder: Path) -> None:  # noqa: ARG002 - nothing was fetched
        """Run the commands in the project. Raises Failed."""
        try:
            for command in resolution.commands:
                run(command, self.environ, self.lock, self.folder)
        except Refused as error:
            raise Failed(str(error)) from None

    def broken(self) -> set[str]:
        """Return what does not fit in the environment, a sentence each."""
        now = read_inventory(self.inventory.executable)
        return broken_requirements(now, {item.name: item.version for item in now.distributions})

    def whole_scope(self) -> Scope:
        """Return the project's files, and all that is installed: the tool decides what it changes."""
        root = os.path.realpath(self.folder)
        packages = tuple(os.path.relpath(os.path.realpath(folder), root) for folder in self.inventory.folders)
        scripts = os.path.relpath(os.path.realpath(self.inventory.scripts), root)
        return Scope(prefix=Path(root), roots=(*self.files, *packages, scripts), folders=packages)
