"""What the context asks for, compared with the packages in an image that was not built from it as it is now."""

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from gpudoctor.containers.builds.context import BuildContext
from gpudoctor.containers.builds.dockerfile import context_mounts
from gpudoctor.containers.builds.plan import Plan
from gpudoctor.containers.builds.stages import Step
from gpudoctor.containers.builds.tracing import ResolvedCopy, trace
from gpudoctor.containers.packages.installed import Distribution, Packages
from gpudoctor.files import read_bounded
from gpudoctor.model import Requirement
from gpudoctor.model.images import CopiedFiles, UnmetRequirement
from gpudoctor.model.record import record
from gpudoctor.parsers import requirements_files

PLATFORM = {"sys_platform": "linux", "platform_system": "Linux", "os_name": "posix"}
MACHINES = {"amd64": "x86_64", "arm64": "aarch64", "386": "i686", "arm": "armv7l"}
"""What Python calls the architectures that engines name. Source: platform.machine() in images of each."""

OF_DEBIAN = "/usr/lib/python3/dist-packages/"
"""Packages of Debian itself: pip constrains only what it installs."""

MAXIMUM_BYTES = 1 << 20
MAXIMUM_INCLUDED = 50
MAXIMUM_REQUIREMENTS = 300

_INCLUDES = re.compile(r"(?P<option>-r|--requirement|-c|--constraint)(?:\s*=\s*|\s+|(?<=-[rc]))(?P<path>\S+)")
_EXTRAS = re.compile(r"[\w.-]+\s*\[([\w., -]+)\]")
_MAIN_SOURCES = ("pyproject.toml dependencies", "pyproject.toml tool.poetry.dependencies", "setup.cfg install_requires")
_MAIN_FILES = ("requirements.txt", "pyproject.toml", "setup.cfg")
_PROJECT_FILES = ("pyproject.toml", "setup.cfg")
_FILE = re.compile(r"(?:.*[-_.])?requirements?(?:[-_.].*)?\.txt|pyproject\.toml|setup\.cfg")
_INSTALLS_PROJECT = re.compile(r"\b(?:pip3?|poetry|uv|pdm|flit|hatch)\b.*\b(?:install|sync)\b")
_INSTALLS_FILES = re.compile(
    r"\.txt\b|\binstall\b.*\s[\"']?\.{1,2}(?:[\s\[/;&\"']|$)"
    r"|\b(?:poetry|pdm|flit|hatch)\s+install\b|\b(?:uv|pdm)\s+(?:pip\s+)?sync\b"
)
_PARTS = re.compile(r"\.\[([\w, -]+)\]|--(?:extra|group|with|extras)[= ]([\w,-]+)")


@record
class Asked:
    """One package that a file asks for.

    file: path in the context. extras: of the package that are asked for.
    is_constraint: it says which version it must be if it is installed, not that it must be.
    """

    name: str
    specifier: str
    file: str
    extras: tuple[str, ...] = ()
    is_constraint: bool = False


@record
class RequirementFile:
    """One file with all that it includes.

    files: its path in the context, and those of the files that it includes.
    is_partly_installed: the packages come from elsewhere, perhaps from an older version of the file: only where at
        least half of them are there as it asks, they are compared at all.
    """

    path: str
    files: tuple[str, ...]
    asked: tuple[Asked, ...]
    is_partly_installed: bool = False


def platform_of(image: Mapping[str, Any], python: str) -> dict[str, str]:
    """Return the values of the markers that the image decides. python: its version, "3.11"; "" if it is not known"""
    machine = MACHINES.get(str(image.get("Architecture") or ""), "")
    found = {**PLATFORM, "platform_machine": machine, "python_version": python}
    if python:
        found["python_full_version"] = f"{python}.0"
    return {name: value for name, value in found.items() if value}


def wanted_by(
    plan: Plan, instructions: Sequence[CopiedFiles], built_at: float, platform: Mapping[str, str]
) -> tuple[RequirementFile, ...]:
    """Return the files of the context that may be newer than the packages of the image.

    A RUN that follows the COPY of an equal file has installed from it, whatever came after. So these files count: those
    that differ in the image, or of which an included one does; those that a RUN installed from that are not in the
    image, and that changed since; and those that no RUN installs from, because then the packages come from the base.
    platform: see `platform_of`.

    Raises:
        ValueError, OSError: a file cannot be read.
    """
    changed = {path for item in instructions for path in (*item.stale, *item.missing)}
    commands = _Commands(plan)
    copied = dict(_copied(plan.copies, commands))
    elsewhere = {**_copied_elsewhere(plan, commands), **_mounted(plan)}
    found: list[RequirementFile] = []
    for path in dict.fromkeys((*copied, *elsewhere)):
        file = read_requirement_file(plan.context, path, platform, commands.parts)
        is_changed = not changed.isdisjoint(file.files)
        if path not in copied:
            entries = filter(None, map(plan.context.entry, file.files))
            is_changed = any(max(entry.st_ctime, entry.st_mtime) > built_at for entry in entries)
        if is_changed or (path in copied and not commands.install_files):
            found.append(replace(commands.without_named(file), is_partly_installed=not is_changed))
    included = {path for item in found for path in item.files[1:]}
    return tuple(item for item in found if item.asked and item.path not in included)


def unmet(
    packages: Packages, wanted: Sequence[RequirementFile], platform: Mapping[str, str]
) -> tuple[UnmetRequirement, ...]:
    """Return the requirements that the packages do not satisfy.

    One that is not installed at all counts only where at least half of its file are: else that file was never
    installed into this image.
    """
    return tuple(dict.fromkeys(found for item in wanted for found in _unmet_of(packages, item, platform)))


def _unmet_of(packages: Packages, wanted: RequirementFile, platform: Mapping[str, str]) -> Iterator[UnmetRequirement]:
    pairs = [(item, packages.find(item.name, _pinned(item))) for item in wanted.asked]
    needed = [(item, found) for item, found in pairs if not item.is_constraint]
    satisfied = sum(found is not None and _satisfies(found.version, item.specifier) for item, found in needed)
    is_installed = 2 * satisfied >= len(needed)
    if wanted.is_partly_installed and not is_installed:
        return
    for item, found in pairs:
        if found is None:
            if is_installed and packages.is_whole and not item.is_constraint:
                yield _as_unmet(item)
        elif item.is_constraint and found.metadata.startswith(OF_DEBIAN):
            continue
        elif not _satisfies(found.version, item.specifier):
            yield _as_unmet(item, found)
        elif item.extras and is_installed:
            yield from _unmet_extras(packages, item, found, platform)


def _unmet_extras(
    packages: Packages, item: Asked, installed: Distribution, platform: Mapping[str, str]
) -> Iterator[UnmetRequirement]:
    """Yield what the extras of an installed package need and is not there, according to its own metadata."""
    for line in packages.required_by(installed):
        if requirements_files.parse_requirement(line, "", {**platform, "extra": ""}) is not None:
            continue  # needed without extras too: pip has seen to it
        needed = (requirements_files.parse_requirement(line, "", {**platform, "extra": extra}) for extra in item.extras)
        for requirement in (found for found in needed if found is not None):
            found = packages.find(requirement.name)
            extra = Asked(name=requirement.name, specifier=requirement.specifier, file=item.file)
            if found is None and packages.is_whole:
                yield _as_unmet(extra)
            elif found is not None and not _satisfies(found.version, requirement.specifier):
                yield _as_unmet(extra, found)


def _as_unmet(item: Asked, found: Distribution | None = None) -> UnmetRequirement:
    installed = "" if found is None else found.version
    return UnmetRequirement(requirement=f"{item.name}{item.specifier}", file=item.file, installed=installed)


class _Commands:
    """The commands that a build of the plan runs, as far as they show what is installed."""

    def __init__(self, plan: Plan) -> None:
        self._texts = [_command(step) for step in _runs(plan)]
        self.named_files = {posixpath.basename(path) for text in self._texts for path, _ in included_by(text)}
        words = (word for text in self._texts for word in re.findall(r"[A-Za-z0-9][\w.-]*", text))
        self._packages = {requirements_files.normalise(word) for word in words}

    @property
    def parts(self) -> tuple[str, ...]:
        """Return the names of the extras and groups that they install: `pip install .[gpu]`, `uv sync --extra gpu`."""
        found = (match[1] or match[2] for text in self._texts for match in _PARTS.finditer(text))
        return tuple(dict.fromkeys(name.strip() for names in found for name in names.split(",")))

    @property
    def install_files(self) -> bool:
        """Return whether one of them installs from a file. If none does, the packages are from the base image."""
        with_dependencies = [text for text in self._texts if "--no-deps" not in text]
        return any(_INSTALLS_FILES.search(text) for text in with_dependencies)

    def install_from(self, path: str) -> bool:
        """Return whether one of them installs from this file."""
        name = posixpath.basename(path)
        if name in _PROJECT_FILES:
            return any(_INSTALLS_PROJECT.search(text) for text in self._texts)
        return any(name in text or "*.txt" in text for text in self._texts)

    def without_named(self, file: RequirementFile) -> RequirementFile:
        """Return the file without the packages that a command names: it may install another version of them."""
        return replace(file, asked=tuple(item for item in file.asked if item.name not in self._packages))


def _copied(copies: Iterable[ResolvedCopy], commands: _Commands) -> Iterator[tuple[str, str]]:
    """Yield the requirements files that are copied, and where to.

    Of a whole folder only the main ones count, and those that a command names: others may be for tests or documents.
    """
    for traced in copies:
        for placed in traced.selection.placed:
            path, name = placed.file.path, posixpath.basename(placed.file.path)
            is_named = any(posixpath.basename(source) == name for source in traced.copy.sources)
            counts = path in _MAIN_FILES or name in commands.named_files or (is_named and _FILE.fullmatch(name))
            if counts and not placed.file.link_target and placed.file.content is None and not placed.file.digest:
                yield path, placed.image_path


def _copied_elsewhere(plan: Plan, commands: _Commands) -> dict[str, str]:
    own = {id(step) for step in plan.steps}
    others = (stage for stage in plan.needed if not any(id(step) in own for step in stage.steps))
    return {
        path: place
        for stage in others
        for path, place in _copied(trace(plan.context, plan.stages, stage), commands)
        if commands.install_from(path)
    }


def _mounted(plan: Plan) -> dict[str, str]:
    """Return the files that a RUN mounts and installs from, which leave no trace in the image."""
    found: dict[str, str] = {}
    for step in _runs(plan):
        for mount in context_mounts(step.instruction):
            found.update(_installed_from(plan, mount, _command(step)))
    return found


def _installed_from(plan: Plan, mount: Mapping[str, str], command: str) -> Iterator[tuple[str, str]]:
    """Yield the files that a command installs from and that are behind the mount, with their places in it."""
    source = posixpath.normpath(posixpath.join("/", mount.get("source", "."))).lstrip("/")
    named = [path for path, _ in included_by(command)]
    named += [path for path in _PROJECT_FILES if _INSTALLS_PROJECT.search(command)]
    for path in dict.fromkeys(named):
        place = posixpath.normpath(path)
        if place.startswith("/"):
            place = posixpath.relpath(place, mount.get("target", "/"))
        if posixpath.basename(path) == posixpath.basename(mount.get("target", "")) or place == ".":
            place = ""
        inside = posixpath.normpath(posixpath.join(source, place)) if place else source
        if not inside.startswith("..") and (plan.context.root / inside).is_file():
            yield inside, path


def _runs(plan: Plan) -> Iterator[Step]:
    return (step for stage in plan.needed for step in stage.steps if step.instruction.name == "RUN")


def _command(step: Step) -> str:
    return " ".join((step.instruction.text, *(doc.content for doc in step.instruction.heredocs)))


def _pinned(item: Asked) -> str:
    match = re.fullmatch(r"==\s*([^*,]+)", item.specifier)
    return match[1] if match is not None else ""


def _satisfies(version: str, specifier: str) -> bool:
    """Return whether the version is one that the specifier allows; also where one of them is not understood."""
    from packaging.specifiers import SpecifierSet

    try:
        return SpecifierSet(specifier).contains(version, prereleases=True)
    except ValueError:  # of both
        return True


def read_requirement_file(
    context: BuildContext, path: str, platform: Mapping[str, str], parts: Iterable[str]
) -> RequirementFile:
    """Return what the file at `path` of the context asks for.

    platform: values of the markers that the image decides, such as `sys_platform`.
    parts: names of the extras and groups of a project that are installed, next to what it always needs.

    Raises:
        ValueError, OSError: the file itself cannot be read; one that it includes is skipped.
    """
    reader = _Reader(context, platform)
    if path.endswith((".toml", ".cfg")):
        asked = tuple(reader.project(path, parts))
    else:
        asked = tuple(reader.requirements(path, is_constraint=False))
    return RequirementFile(path=path, files=tuple(reader.read), asked=asked[:MAXIMUM_REQUIREMENTS])


def included_by(text: str) -> Iterator[tuple[str, bool]]:
    """Yield each path behind -r or -c in a file or command, and whether it is one of constraints."""
    for match in _INCLUDES.finditer(text):
        yield match["path"].strip("'\""), match["option"] in ("-c", "--constraint")


class _Reader:
    def __init__(self, context: BuildContext, platform: Mapping[str, str]) -> None:
        self._context = context
        self._platform = platform
        self.read: list[str] = []

    def project(self, path: str, parts: Iterable[str]) -> Iterator[Asked]:
        """Yield what pyproject.toml or setup.cfg asks for."""
        parse = requirements_files.parse_pyproject if path.endswith(".toml") else requirements_files.parse_setup_cfg
        kinds = ("pyproject.toml extra", "pyproject.toml group", "pyproject.toml tool.poetry.group.", "setup.cfg extra")
        installed = {*_MAIN_SOURCES, *(f"{kind} {part}".replace(". ", ".") for kind in kinds for part in parts)}
        for item in parse(self._text(path), self._platform):
            if item.source in installed:
                yield Asked(name=item.name, specifier=item.specifier, file=path)

    def requirements(self, path: str, *, is_constraint: bool) -> Iterator[Asked]:
        """Yield what a requirements file asks for, and those that it includes."""
        for _, line in requirements_files.logical_lines(self._text(path)):
            if line.startswith("-"):
                yield from self._included(path, line, is_constraint=is_constraint)
                continue
            item = _parse(line, self._platform)
            if item is not None:
                extras = _EXTRAS.match(line)
                yield Asked(
                    name=item.name,
                    specifier=item.specifier,
                    file=path,
                    extras=tuple(requirements_files.normalise(name.strip()) for name in extras[1].split(","))
                    if extras
                    else (),
                    is_constraint=is_constraint,
                )

    def _included(self, path: str, line: str, *, is_constraint: bool) -> Iterator[Asked]:
        for named, constrains in included_by(line):
            inside = posixpath.normpath(posixpath.join(posixpath.dirname(path), named))
            if inside in self.read or inside.startswith(("..", "/")) or len(self.read) > MAXIMUM_INCLUDED:
                continue
            try:
                yield from self.requirements(inside, is_constraint=is_constraint or constrains)
            except OSError:  # it is made by the build, or is elsewhere in the image
                continue

    def _text(self, path: str) -> str:
        content = read_bounded(self._context.root / self._context.resolve(path), MAXIMUM_BYTES)
        self.read.append(path)
        return content.decode("utf-8", "replace")


def _parse(line: str, platform: Mapping[str, str]) -> Requirement | None:
    """Return what one line asks for; of "name @ address of a wheel" the version of that wheel."""
    item = requirements_files.parse_requirement(line, "", platform)
    if item is None or item.specifier or "@" not in line:
        return item
    wheel = requirements_files.parse_requirement(line.partition("@")[2].strip().partition(" ")[0], "", platform)
    return wheel if wheel is not None and wheel.name == item.name else item
