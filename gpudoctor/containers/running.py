"""A container beside the project: which image it runs, what was changed inside it, and what lies over its files."""

from __future__ import annotations

import filecmp
import os
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any

from gpudoctor.containers.builds.context import BuildContext, is_below
from gpudoctor.containers.builds.copied_files import CopiedFile
from gpudoctor.containers.builds.tracing import ResolvedCopy
from gpudoctor.containers.comparison import is_same
from gpudoctor.containers.engines.connection import seconds_of
from gpudoctor.containers.engines.objects import inspect_image
from gpudoctor.containers.images.base_images import environment_of
from gpudoctor.containers.images.reader import ContainerFiles, created_container
from gpudoctor.containers.packages.loaded_code import loaded_code
from gpudoctor.model.images import Mounted, RunningContainer

if TYPE_CHECKING:
    from docker import APIClient

MAXIMUM_NAMED = 1000
MAXIMUM_MOUNTINFO = 4 << 20

MAXIMUM_CODE_FILES = 20_000

_SCRATCH = ("/tmp", "/var/tmp", "/run")  # noqa: S108 - paths in an image, nothing is written
"""Folders whose files a build leaves behind and nobody misses: often in memory."""

_NO_SOURCE = ("__pycache__", "node_modules", "venv", "site-packages", "tests", "docs", "build", "dist")
_OF_TESTS = re.compile(r"test_.*\.py|.*_test\.py|(?:conftest|setup|noxfile)\.py")
_RELOADS = re.compile(
    r"--reload|runserver|\bnodemon\b|\bwatch(?:medo|files|exec)\b|\bjupyter|\bflask\b.*--debug|streamlit"
)
_WAITS = re.compile(r"(?:\S*/)?(?:sleep inf(?:inity)?|tail -[fF] \S+|(?:ba|da|a|z)?sh(?: -l| -i)*|cat|python3?)")
_DELETED = 2
"""Source: ContainerChanges of the Docker Engine API, field Kind: 0 modified, 1 added, 2 deleted."""


def look_at_container(
    api: APIClient, name: str, image_id: str, context: BuildContext, copies: Sequence[ResolvedCopy]
) -> RunningContainer:
    """Return the facts about the container `name`. image_id: the image that it should run.

    Raises:
        docker.errors.NotFound: there is none of that name.
    """
    about: Mapping[str, Any] = api.inspect_container(name)
    state = about.get("State") or {}
    placed = {item.image_path: item for copy in copies for item in copy.selection.placed}
    in_force = _in_force(about.get("Mounts") or ())
    code = _code_of(about, in_force)
    look = _MountLook(_Pair(api, about["Id"], image_id), context, placed, int(state.get("Pid") or 0), code)
    mounts = (
        *(look.mounted(mount, in_force) for mount in in_force if look.concerns(mount)),
        *_covered_by_memory(about, placed),
    )
    kept = inspect_image(api, about["Image"])
    kept_id = image_id if kept is None else str(kept["Id"])  # the engine may have lost the image of its container
    return RunningContainer(
        name=str(about.get("Name") or name).lstrip("/"),
        image_id=str(about["Image"]),
        is_running=bool(state.get("Running")),
        started_at=seconds_of(str(state.get("StartedAt") or "")) or None,
        keeps_code=keeps_code(_command_of(about)),
        modified=_modified(_Pair(api, about["Id"], kept_id), api, placed, mounts),
        mounts=mounts,
    )


def _command_of(about: Mapping[str, Any]) -> list[str]:
    return [str(about.get("Path") or ""), *(about.get("Args") or ())]


def _code_of(about: Mapping[str, Any], mounts: Sequence[Mapping[str, Any]]) -> frozenset[str] | None:
    """Return the mounted Python files that the container's process can have read; None where nobody can tell."""
    config: Mapping[str, Any] = about.get("Config") or {}
    places = [(_destination(mount), str(mount.get("Source") or "")) for mount in mounts]
    return loaded_code(_command_of(about), str(config.get("WorkingDir") or "/"), environment_of(config), places)


def _modified(
    pair: _Pair, api: APIClient, placed: Mapping[str, CopiedFile], mounts: Sequence[Mounted]
) -> tuple[str, ...]:
    """Return the copied paths whose files were changed or deleted inside the container: in content, link or mode.

    The engine's list of changes tells too much: a file that was only touched or copied up is in it.
    """
    hidden = tuple(mount.destination for mount in mounts)
    changes = {str(change.get("Path")): change.get("Kind") for change in api.diff(pair.id) or ()}
    removed = tuple(path for path, kind in changes.items() if kind == _DELETED)
    concerned = [path for path in placed if (path in changes or is_below(path, removed)) and not is_below(path, hidden)]
    return tuple(sorted(pair.differing(concerned)))[:MAXIMUM_NAMED]


class _Pair:
    """A container beside an image, at the same paths."""

    def __init__(self, api: APIClient, container: str, image_id: str) -> None:
        self._api = api
        self._image_id = image_id
        self.id = container
        self.container = ContainerFiles(api, container)

    def differing(self, paths: Iterable[str]) -> list[str]:
        """Return the paths at which the container has another file, or none, or one that the image has not."""
        wanted = list(paths)
        if not wanted:
            return []
        with created_container(self._api, self._image_id) as created:
            image = ContainerFiles(self._api, created)
            return [path for path in wanted if not _is_alike(image, self.container, path)]


def _is_alike(image: ContainerFiles, container: ContainerFiles, path: str) -> bool:
    about = (image.stat(path), container.stat(path))
    if None in about or len({(item or {})["size"] for item in about}) > 1:
        return about == (None, None)
    files = (image.whole_file(path), container.whole_file(path))
    return len({file.identity for file in files if file is not None}) == 1


def _in_force(mounts: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the mounts of files and folders."""
    return [mount for mount in mounts if str(mount.get("Type") or "bind") in ("bind", "volume")]


def _covered_by_memory(about: Mapping[str, Any], placed: Mapping[str, CopiedFile]) -> Iterator[Mounted]:
    """Yield the file systems in memory that lie over copied files, and so hide them.

    Source: HostConfig.Tmpfs of the Docker Engine API; by `--mount` they stand among the mounts.
    """
    by_mount = (m for m in about.get("Mounts") or () if m.get("Type") == "tmpfs")
    destinations = {*((about.get("HostConfig") or {}).get("Tmpfs") or {}), *(str(m["Destination"]) for m in by_mount)}
    for destination in sorted({posixpath.normpath(path) for path in destinations} - {*_SCRATCH}):
        hidden = {item.file.path for path, item in placed.items() if is_below(path, (destination,))}
        if hidden:
            yield Mounted(destination=destination, missing=tuple(sorted(hidden))[:MAXIMUM_NAMED])


def keeps_code(command: Sequence[str]) -> bool:
    """Return whether the process that the command starts goes on with the source that it read at first.

    Servers with a reloader do not, and a container that only waits for `docker exec` has read none.
    """
    words = " ".join(command)
    return not (_RELOADS.search(words) or _WAITS.fullmatch(words))


class _MountLook:
    """What the mounts of one container show of the files that they lie over."""

    def __init__(
        self,
        pair: _Pair,
        context: BuildContext,
        placed: Mapping[str, CopiedFile],
        pid: int,
        code: frozenset[str] | None,
    ) -> None:
        self._code = code
        self._pair = pair
        self._context = context
        self._placed = placed
        self._pid = pid

    def concerns(self, mount: Mapping[str, Any]) -> bool:
        """Return whether the mount lies over a copied file, or shows the context."""
        destination = _destination(mount)
        return self._is_inside(mount) or any(is_below(path, (destination,)) for path in self._placed)

    def _is_inside(self, mount: Mapping[str, Any]) -> bool:
        root = os.path.realpath(self._context.root)
        return mount.get("Type") == "bind" and is_below(os.path.realpath(str(mount.get("Source") or "")), (root,))

    def mounted(self, mount: Mapping[str, Any], others: Sequence[Mapping[str, Any]]) -> Mounted:
        """Return the facts about one mount. others: all of them; where one lies in another, the inner one counts."""
        destination = _destination(mount)
        inner = tuple(
            path for path in map(_destination, others) if path != destination and is_below(path, (destination,))
        )
        covered = {
            path: item
            for path, item in self._placed.items()
            if is_below(path, (destination,)) and not is_below(path, inner)
        }
        shown = self._pair.container.read([destination], {path: i.file.size_bytes for path, i in covered.items()})
        other = {path for path, i in covered.items() if path not in shown or not is_same(self._context, i, shown[path])}
        other = set(self._pair.differing(other))  # what the image itself has so is the work of its instructions
        stale = {covered[path].file.path for path in other if path in shown}
        missing = {covered[path].file.path for path in other if path not in shown}
        source = str(mount.get("Source") or "")
        pairs = [(_source_of(source, destination, path), item) for path, item in covered.items()]
        of_context = [item for there, item in pairs if self._is_of_context(there, item)]
        code = _newest(self._code_in(source)) if of_context or self._is_inside(mount) else None
        return Mounted(
            destination=destination,
            stale=tuple(sorted(stale))[:MAXIMUM_NAMED],
            missing=tuple(sorted(missing))[:MAXIMUM_NAMED],
            current=tuple(sorted({item.file.path for item in covered.values()} - stale - missing))[:MAXIMUM_NAMED],
            is_context=2 * len(of_context) >= len(covered) if covered else self._is_inside(mount),
            replaced=self._is_replaced(source, destination),
            newest_change_at=None if code is None else code[0],
            newest_code="" if code is None else code[1],
        )

    def _code_in(self, source: str) -> Iterable[str]:
        """Return the Python files at or below `source` that the process can have read."""
        if self._code is not None:
            return [path for path in self._code if is_below(path, (source,))]
        return [source] if source.endswith(".py") else islice(_codeis_below(source), MAXIMUM_CODE_FILES)

    def _is_of_context(self, there: str, placed: CopiedFile) -> bool:
        """Return whether the mount shows the file of the context itself, not a copy of it."""
        try:
            return os.path.samefile(there, self._context.root / placed.file.path)
        except OSError:
            return False

    def _is_replaced(self, source: str, destination: str) -> bool | None:
        """Return whether a single mounted file is another one than that at its source by now; None if unknown.

        The engine shows the new file; only the kernel tells what the process sees.
        """
        deleted = _is_deleted(self._pid, destination) if os.path.isfile(source) else None
        if not deleted:
            return deleted
        try:  # as root, the old file can be read: it may have been replaced by an equal one
            return not filecmp.cmp(f"/proc/{self._pid}/root{destination}", source, shallow=False)
        except OSError:
            return True


def _newest(paths: Iterable[str]) -> tuple[float, str] | None:
    """Return when the newest of the files was written, and its path: by its mtime, for its ctime tells less."""
    times = []
    for path in paths:
        with suppress(OSError):
            times.append((os.lstat(path).st_mtime, path))
    return max(times, default=None)


def _codeis_below(folder: str) -> Iterator[str]:
    """Yield the Python files below `folder`, without those that only tests and builds read."""
    for where, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".") and name not in _NO_SOURCE]
        yield from (os.path.join(where, name) for name in names if name.endswith(".py") and not _OF_TESTS.match(name))


def _is_deleted(pid: int, destination: str) -> bool | None:
    """Return whether the kernel calls what is mounted at `destination` deleted; None where it cannot be asked.

    Source: proc_pid_mountinfo(5), of which the fourth field is the mount's root and the fifth its place.
    """
    try:
        with open(f"/proc/{pid}/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
            fields = [line.split(" ") for line in file.read(MAXIMUM_MOUNTINFO).splitlines()]
    except OSError:
        return None
    roots = [parts[3] for parts in fields if len(parts) > 4 and _unescaped(parts[4]) == destination]
    return roots[-1].endswith("//deleted") if roots and pid > 0 else None


def _unescaped(text: str) -> str:
    r"""Return a path of mountinfo with its octal escapes (\040 for a space) replaced."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), text)


def _destination(mount: Mapping[str, Any]) -> str:
    return posixpath.normpath(str(mount["Destination"]))


def _source_of(source: str, destination: str, path: str) -> str:
    return source if path == destination else os.path.join(source, posixpath.relpath(path, destination))
