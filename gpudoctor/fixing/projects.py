"""Projects whose lock file decides what is installed: their own tool changes their files and their environment."""

import difflib
import os
import re
import shlex
import shutil
import tempfile
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from packaging.utils import canonicalize_name

from gpudoctor.fixing.actions import Action
from gpudoctor.fixing.environment import Inventory
from gpudoctor.fixing.installers import name_of
from gpudoctor.fixing.places import place_of
from gpudoctor.fixing.programs import Failed, Refused, run, run_to_end
from gpudoctor.fixing.record import Scope
from gpudoctor.fixing.resolution import Change, Pin, Resolution
from gpudoctor.fixing.tools import CONDA_PACKAGE, Tool

_UV_LINE = r"(?m)^ ([-+]) ([\w.-]+)==(\S+)"
_POETRY_LINE = (
    r"(?m)^ +[-•] (?:(?P<verb>Installing|Removing) (?P<name>[\w.-]+) \((?P<version>[^\s)]+)[^)]*\)"
    r"|(?:Updating|Downgrading) (?P<changed>[\w.-]+) \((?P<old>\S+)[^)]* -> (?P<new>[^\s)]+)[^)]*\))(?!.*Skipped)"
)


class Project(Tool):
    """A project and the tool that changes it. The plan is made in a copy of its files; its folders are linked there.

    files: of the tool, the one that a person edits first. depth: of the environment below the project.
    """

    folder: str
    depth = 1

    def __init__(self, inventory: Inventory, environ: Mapping[str, str]) -> None:
        named = {"UV_PROJECT_ENVIRONMENT": inventory.prefix, "VIRTUAL_ENV": inventory.prefix}
        super().__init__(inventory, {**environ, **named, "POETRY_NO_INTERACTION": "1"})
        self.folder = self._above(inventory.prefix)
        self.files = ("pyproject.toml", f"{self.name}.lock")

    def _above(self, prefix: str) -> str:
        for _ in range(self.depth):
            prefix = os.path.dirname(prefix)
        return prefix

    def resolve(self, actions: Sequence[Action]) -> Resolution:
        """Return what the commands change, as the tool says for a copy of the project.

        Raises:
            Refused: the project is not one of this tool, or the tool finds no versions that go together.
        """
        if os.path.realpath(self.folder) != self._above(os.path.realpath(self.inventory.prefix)):
            raise Refused(f"{self.inventory.prefix} is a link: name the interpreter below the folder that it leads to")
        missing = [name for name in self.files if not os.path.isfile(os.path.join(self.folder, name))]
        if missing:
            raise Refused(f"{self.folder} has no {missing[0]}: {self.name} has no project there to change")
        commands = tuple(action.command for action in actions)
        with tempfile.TemporaryDirectory(prefix="gpudoctor-") as copy:
            self._copy(Path(copy))
            try:
                planned = (*self._planned(commands, copy),)
            except Failed as error:
                self._refuse_second_place(actions)
                raise Refused(f"{self.name} finds no versions that go together: {error}") from None
            diff = self._diff(Path(copy))
        changes = tuple(change for change in planned if change.before != change.after)
        wheels = tuple(change for change in changes if not change.name.startswith(CONDA_PACKAGE))
        pins = tuple(Pin(name=change.name, version=change.after) for change in wheels if change.after is not None)
        removes = tuple(change.name for change in wheels if change.after is None)
        return Resolution(pins=pins, removes=removes, changes=changes, diff=diff, commands=commands)

    def _refuse_second_place(self, actions: Sequence[Action]) -> None:
        """Refuse with the right commands if a group, an extra or a workspace member asks for one of the packages."""
        names = {name_of(requirement) for action in actions for requirement in action.requirements}
        place = place_of(Path(self.folder), names, self.inventory.markers)
        if place:
            commands = (
                [*action.command[:2], *(place if action.requirements else ()), *action.command[2:]]
                for action in actions
            )
            raise Refused(
                f"the project asks for another version with {shlex.join(place)}: change it there, in {self.folder},"
                f" with {' && '.join(map(shlex.join, commands))}"
            )

    def _copy(self, copy: Path) -> None:
        inside = os.path.relpath(self.inventory.prefix, self.folder).split(os.sep)[0]
        for entry in os.scandir(self.folder):
            if entry.name in self.files:
                shutil.copyfile(entry.path, copy / entry.name)
            elif entry.name != inside:
                os.symlink(entry.path, copy / entry.name)

    @abstractmethod
    def _planned(self, commands: Sequence[Sequence[str]], copy: str) -> Iterator[Change]:
        """Yield the packages that the commands are about, as they are and will be, and change the files of the copy."""

    def _change(self, name: str, after: str | None, size_bytes: int | None = None) -> Change:
        return Change(name=name, before=self.inventory.installed_as(name), after=after, size_bytes=size_bytes)

    def _diff(self, copy: Path) -> tuple[str, ...]:
        name = self.files[0]
        before, after = (Path(place, name).read_text(encoding="utf-8").splitlines() for place in (self.folder, copy))
        return tuple(difflib.unified_diff(before, after, f"a/{name}", f"b/{name}", lineterm=""))

    def whole_scope(self) -> Scope:
        """Return the project's files, and all that is installed: the tool decides what it changes."""
        root = os.path.realpath(self.folder)
        packages = self.package_folders(root)
        scripts = os.path.relpath(os.path.realpath(self.inventory.scripts), root)
        return Scope(prefix=Path(root), roots=(*self.files, *packages, scripts), folders=packages)


class UvProject(Project):
    """A project of uv."""

    name = "uv"

    def _planned(self, commands: Sequence[Sequence[str]], copy: str) -> Iterator[Change]:
        for command in commands:
            run([*command, "--no-sync"], self.environ, folder=copy)
        options = ("--inexact", "--dry-run", "--frozen", "--no-install-workspace")
        _, said, _ = run_to_end(["uv", "sync", *options], self.environ, folder=copy)
        after: dict[str, str | None] = {}
        for sign, name, version in re.findall(_UV_LINE, said):
            if sign == "+" or canonicalize_name(name) not in after:
                after[canonicalize_name(name)] = version if sign == "+" else None
        yield from (self._change(name, version) for name, version in after.items())


class PoetryProject(Project):
    """A project of poetry."""

    name = "poetry"

    def _planned(self, commands: Sequence[Sequence[str]], copy: str) -> Iterator[Change]:
        after: dict[str, str | None] = {}
        for command in commands:
            if command[1] == "source":
                run(command, self.environ, folder=copy)
                continue
            said = run([*command, "--dry-run", "--no-ansi"], self.environ, folder=copy)
            run([*command, "--lock"], self.environ, folder=copy)
            for row in re.finditer(_POETRY_LINE, said):
                name = canonicalize_name(row["name"] or row["changed"])
                after[name] = None if row["verb"] == "Removing" else row["version"] or row["new"]
        yield from (self._change(name, version) for name, version in after.items())
