"""Files of the context that say which packages a project needs, with the files that they include."""

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping

from gpudoctor.containers.bounded_files import read_bounded
from gpudoctor.containers.builds.context import BuildContext
from gpudoctor.model import Requirement
from gpudoctor.model.record import record
from gpudoctor.parsers.requirements_files import (
    logical_lines,
    normalise,
    parse_pyproject,
    parse_requirement,
    parse_setup_cfg,
)

MAXIMUM_BYTES = 1 << 20
MAXIMUM_INCLUDED = 50
MAXIMUM_REQUIREMENTS = 300

_INCLUDES = re.compile(r"(?P<option>-r|--requirement|-c|--constraint)(?:\s*=\s*|\s+|(?<=-[rc]))(?P<path>\S+)")
_EXTRAS = re.compile(r"[\w.-]+\s*\[([\w., -]+)\]")
_MAIN_SOURCES = ("pyproject.toml dependencies", "pyproject.toml tool.poetry.dependencies", "setup.cfg install_requires")


@record
class Asked:
    """One package that a file asks for.

    file: path in the context. extras: of the package that are asked for.
    is_constraint: it says which version it must be where it is installed, not that it must be.
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
    """

    path: str
    files: tuple[str, ...]
    asked: tuple[Asked, ...]


def read_requirement_file(
    context: BuildContext, path: str, platform: Mapping[str, str], parts: Iterable[str]
) -> RequirementFile:
    """Return what the file at `path` of the context asks for.

    platform: values of the markers that the image decides, such as `sys_platform`.
    parts: names of the extras and groups of a project that are installed, beside what it always needs.

    Raises:
        ValueError, OSError: the file itself cannot be read; one that it includes is passed over.
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
        parse = parse_pyproject if path.endswith(".toml") else parse_setup_cfg
        kinds = ("pyproject.toml extra", "pyproject.toml group", "pyproject.toml tool.poetry.group.", "setup.cfg extra")
        installed = {*_MAIN_SOURCES, *(f"{kind} {part}".replace(". ", ".") for kind in kinds for part in parts)}
        for item in parse(self._text(path), self._platform):
            if item.source in installed:
                yield Asked(name=item.name, specifier=item.specifier, file=path)

    def requirements(self, path: str, *, is_constraint: bool) -> Iterator[Asked]:
        """Yield what a requirements file asks for, and those that it includes."""
        for _, line in logical_lines(self._text(path)):
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
                    extras=tuple(normalise(name.strip()) for name in extras[1].split(",")) if extras else (),
                    is_constraint=is_constraint,
                )

    def _included(self, path: str, line: str, *, is_constraint: bool) -> Iterator[Asked]:
        for named, constrains in included_by(line):
            inside = posixpath.normpath(posixpath.join(posixpath.dirname(path), named))
            if inside in self.read or inside.startswith(("..", "/")) or len(self.read) > MAXIMUM_INCLUDED:
                continue
            try:
                yield from self.requirements(inside, is_constraint=is_constraint or constrains)
            except OSError:  # it is made by the build, or stands elsewhere in the image
                continue

    def _text(self, path: str) -> str:
        content = read_bounded(self._context.root / self._context.resolve(path), MAXIMUM_BYTES)
        self.read.append(path)
        return content.decode("utf-8", "replace")


def _parse(line: str, platform: Mapping[str, str]) -> Requirement | None:
    """Return what one line asks for; of "name @ address of a wheel" the version of that wheel."""
    item = parse_requirement(line, "", platform)
    if item is None or item.specifier or "@" not in line:
        return item
    wheel = parse_requirement(line.partition("@")[2].strip().partition(" ")[0], "", platform)
    return wheel if wheel is not None and wheel.name == item.name else item
