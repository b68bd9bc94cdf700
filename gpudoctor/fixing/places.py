"""Where a project asks for a package, if not in its main dependencies: its tool needs an option to change it there."""

import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from gpudoctor.files import read_bounded
from gpudoctor.parsers.requirements_files import parse_pyproject

_OPTIONS = {"extra": "--optional", "group": "--group"}
_PLACE = r"pyproject\.toml (?:tool\.poetry\.)?(extra|group)[ .](.+)"
_MEMBER = r'name = "([\w.-]+)"\n(?:version = .*\n)?source = \{ (?:editable|virtual) = "([^".][^"]*)" \}'
_MOST_BYTES = 1 << 24


def place_of(folder: Path, names: Collection[str], markers: Mapping[str, str]) -> tuple[str, ...]:
    """Return the options of `add` for where one of these is asked for: a group, an extra, a member of a workspace."""
    for options, path in (((), folder), *_members(folder)):
        with suppress(OSError, ValueError):
            for requirement in parse_pyproject(_text(path / "pyproject.toml"), markers):
                place = re.fullmatch(_PLACE, requirement.source)
                if requirement.name in names and (place or options):
                    return (*options, *((_OPTIONS[place[1]], place[2]) if place else ()))
    return ()


def _members(folder: Path) -> Iterator[tuple[tuple[str, ...], Path]]:
    """Yield the other members of a workspace of uv: the option that names each, and its folder."""
    with suppress(OSError, ValueError):
        for name, member in re.findall(_MEMBER, _text(folder / "uv.lock")):
            yield ("--package", name), folder / member


def _text(path: Path) -> str:
    return read_bounded(path, _MOST_BYTES).decode("utf-8")
