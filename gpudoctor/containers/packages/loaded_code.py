"""Which mounted source files a process can have read: those that its script imports, and what they import.

They are parsed, never run. If the command names no script, or a file imports by a name that it makes, nobody knows.
"""

import ast
import os
import posixpath
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, product
from pathlib import Path

from gpudoctor.containers.packages.start_command import started_file
from gpudoctor.files import read_bounded

MAXIMUM_FILES = 2000
MAXIMUM_FILE_BYTES = 1 << 20

_BY_NAME = (
    *("__import__", "import_module", "iter_modules", "walk_packages"),
    *("spec_from_file_location", "run_path", "exec"),
)


def loaded_code(
    command: Sequence[str], directory: str, environment: Mapping[str, str], mounts: Sequence[tuple[str, str]]
) -> frozenset[str] | None:
    """Return the mounted Python files, by their paths on this machine, that the process can have read.

    None if that is unknown.
    command, directory, environment: of the container. mounts: destination and source of each folder or file.
    """
    started = started_file(command, directory)
    if started is None:
        return None
    paths = (path for path in environment.get("PYTHONPATH", "").split(":") if path)
    roots = (*started.folders, *(posixpath.normpath(posixpath.join(directory, path)) for path in paths))
    return _Imports(roots, mounts).from_file(started.files)


class _Imports:
    def __init__(self, roots: Sequence[str], mounts: Sequence[tuple[str, str]]) -> None:
        self._roots = roots
        self._mounts = sorted(mounts, key=lambda mount: len(mount[0]), reverse=True)

    def from_file(self, starts: Sequence[str]) -> frozenset[str] | None:
        waiting = [next((path for path in starts if self._here(path)), None)]
        found: dict[str, str] = {}
        while waiting:
            path = waiting.pop()
            if path is None or len(found) > MAXIMUM_FILES:
                return None
            found[path] = here = self._here(path)
            try:
                tree = ast.parse(read_bounded(Path(here), MAXIMUM_FILE_BYTES))
            except (OSError, ValueError, SyntaxError, RecursionError, MemoryError):
                return None
            if any(_name_of(node) in _BY_NAME for node in ast.walk(tree)):
                return None
            new = {item for node in ast.walk(tree) for item in self._imported(node, path)}
            new |= set(self._packages_around(path))
            waiting.extend(new - found.keys() - set(waiting))
        return frozenset(found.values())

    def _imported(self, node: ast.AST, path: str) -> Iterator[str]:
        """Yield the mounted files of the modules that one statement imports, those of their packages too."""
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from self._modules(self._roots, alias.name.split("."))
        elif isinstance(node, ast.ImportFrom):
            roots = self._roots
            if node.level:
                roots = (posixpath.normpath(posixpath.join(path, *[".."] * node.level)),)
            for alias in node.names:
                yield from self._modules(roots, [*(node.module or "").split("."), alias.name])

    def _packages_around(self, path: str) -> Iterator[str]:
        """Yield the __init__.py of each package that the file is in: they are read before it."""
        folder = posixpath.dirname(path)
        while self._here(f"{folder}/__init__.py"):
            yield f"{folder}/__init__.py"
            folder = posixpath.dirname(folder)

    def _modules(self, roots: Sequence[str], names: Sequence[str]) -> Iterator[str]:
        for root, inside in product(roots, accumulate(filter(None, names), posixpath.join)):
            place = posixpath.join(root, inside)
            yield from filter(self._here, (f"{place}/__init__.py", f"{place}.py"))

    def _here(self, path: str) -> str:
        """Return where the file of the container is on this machine; "" if no mount shows it."""
        for destination, source in self._mounts:
            if path == destination or path.startswith(f"{destination.rstrip('/')}/"):
                here = source if path == destination else os.path.join(source, posixpath.relpath(path, destination))
                return here if os.path.isfile(here) else ""
        return ""


def _name_of(node: ast.AST) -> str:
    """Return the name of what is called."""
    called = node.func if isinstance(node, ast.Call) else None
    return called.id if isinstance(called, ast.Name) else called.attr if isinstance(called, ast.Attribute) else ""
