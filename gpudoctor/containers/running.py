"""A container compared with the project: its image, what was changed inside it, and what hides its files."""

import filecmp
import os
import posixpath
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any

from gpudoctor.containers.builds.context import BuildContext, is_below
from gpudoctor.containers.builds.copied_files import CopiedFile
from gpudoctor.containers.builds.tracing import ResolvedCopy
from gpudoctor.containers.comparison import MAXIMUM_NAMED, is_same
from gpudoctor.containers.engines import APIClient
from gpudoctor.containers.engines.connection import seconds_of
from gpudoctor.containers.engines.objects import inspect_image
from gpudoctor.containers.images.base_images import environment_of
from gpudoctor.containers.images.reader import ContainerFiles, created_container
from gpudoctor.containers.packages.loaded_code import loaded_code
from gpudoctor.model.images import Mounted, RunningContainer
from gpudoctor.model.record import record

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


@record
class _Mount:
    """A file or folder that is in the container: of the host, or a volume."""

    destination: str
    source: str
    is_bind: bool

    def on_host(self, path: str) -> str:
        """Return where the file at `path` of the container is on this machine."""
        return self.source if path == self.destination else f"{self.source}/{posixpath.relpath(path, self.destination)}"


def look_at_container(
    api: APIClient, name: str, image_id: str, context: BuildContext, copies: Sequence[ResolvedCopy]
) -> RunningContainer:
    """Return the facts about the container `name`. image_id: the image that it should run.

    Raises:
        docker.errors.NotFound: there is none of that name.
    """
    about: Mapping[str, Any] = api.inspect_container(name)
    state, config = about.get("State") or {}, about.get("Config") or {}
    command = [str(about.get("Path") or ""), *(about.get("Args") or ())]
    placed = {item.image_path: item for copy in copies for item in copy.selection.placed}
    mounts = tuple(_mounts_of(about))
    places = [(mount.destination, mount.source) for mount in mounts]
    code = loaded_code(command, str(config.get("WorkingDir") or "/"), environment_of(config), places)
    look = _Look(api, about["Id"], image_id, context, placed)
    shown = tuple(
        look.mounted(mount, mounts, code, int(state.get("Pid") or 0)) for mount in mounts if look.concerns(mount)
    )
    shown = (*shown, *_covered_by_memory(about, placed))
    return RunningContainer(
        name=str(about.get("Name") or name).lstrip("/"),
        image_id=str(about["Image"]),
        is_running=bool(state.get("Running")),
        started_at=seconds_of(str(state.get("StartedAt") or "")) or None,
        keeps_code=keeps_code(command),
        modified=look.modified(str(about["Image"]), tuple(mount.destination for mount in shown)),
        mounts=shown,
    )


def _mounts_of(about: Mapping[str, Any]) -> Iterator[_Mount]:
    for mount in about.get("Mounts") or ():
        kind = str(mount.get("Type") or "bind")
        if kind in ("bind", "volume"):
            destination = posixpath.normpath(str(mount["Destination"]))
            is_bind = mount.get("Type") == "bind"
            yield _Mount(destination=destination, source=str(mount.get("Source") or ""), is_bind=is_bind)


def _covered_by_memory(about: Mapping[str, Any], placed: Mapping[str, CopiedFile]) -> Iterator[Mounted]:
    """Yield the file systems in memory that cover copied files, and so hide them.

    Source: HostConfig.Tmpfs of the Docker Engine API; by `--mount` they are among the mounts.
    """
    by_mount = (m for m in about.get("Mounts") or () if m.get("Type") == "tmpfs")
    destinations = {*((about.get("HostConfig") or {}).get("Tmpfs") or {}), *(str(m["Destination"]) for m in by_mount)}
    for destination in sorted({posixpath.normpath(path) for path in destinations} - {*_SCRATCH}):
        hidden = {item.file.path for path, item in placed.items() if is_below(path, (destination,))}
        if hidden:
            yield Mounted(destination=destination, missing=_first(hidden))


def keeps_code(command: Sequence[str]) -> bool:
    """Return whether the process that the command starts continues with the source that it read at first.

    Servers with a reloader do not, and a container that only waits for `docker exec` has read none.
    """
    words = " ".join(command)
    return not (_RELOADS.search(words) or _WAITS.fullmatch(words))


class _Look:
    """A container compared with its image and the files that were copied into that. placed: by their paths there."""

    def __init__(
        self, api: APIClient, container: str, image_id: str, context: BuildContext, placed: Mapping[str, CopiedFile]
    ) -> None:
        self._api = api
        self._id = container
        self._files = ContainerFiles(api, container)
        self._image_id = image_id
        self._context = context
        self._placed = placed

    def modified(self, image: str, hidden: tuple[str, ...]) -> tuple[str, ...]:
        """Return the copied paths whose files were changed or deleted inside the container: in content, link or mode.

        The engine's list of changes is too long: it includes files that were only touched or copied up.

        image: its own, which the engine may have lost. hidden: what mounts cover.
        """
        kept = inspect_image(self._api, image)
        changes = {str(change.get("Path")): change.get("Kind") for change in self._api.diff(self._id) or ()}
        removed = tuple(path for path, kind in changes.items() if kind == _DELETED)
        changed = (path for path in self._placed if path in changes or is_below(path, removed))
        concerned = [path for path in changed if not is_below(path, hidden)]
        return _first(self._differing(concerned, self._image_id if kept is None else str(kept["Id"])))

    def _differing(self, paths: Collection[str], image_id: str) -> set[str]:
        """Return the paths at which the container has a different file than the image, or only one of them has any."""
        if not paths:
            return set()
        with created_container(self._api, image_id) as created:
            image = ContainerFiles(self._api, created)
            return {path for path in paths if not _is_alike(image, self._files, path)}

    def concerns(self, mount: _Mount) -> bool:
        """Return whether the mount covers a copied file, or shows the context."""
        return self._shows_context(mount) or any(is_below(path, (mount.destination,)) for path in self._placed)

    def _shows_context(self, mount: _Mount) -> bool:
        return mount.is_bind and is_below(os.path.realpath(mount.source), (os.path.realpath(self._context.root),))

    def mounted(self, mount: _Mount, others: Sequence[_Mount], code: frozenset[str] | None, pid: int) -> Mounted:
        """Return the facts about one mount.

        others: all of them; if one is in another, the inner one counts.
        code: the mounted Python files that the process `pid` can have read; None if that cannot be determined.
        """
        here = (mount.destination,)
        inner = tuple(m.destination for m in others if m.destination not in here and is_below(m.destination, here))
        covered = {p: item for p, item in self._placed.items() if is_below(p, here) and not is_below(p, inner)}
        shown = self._files.read(here, {path: item.file.size_bytes for path, item in covered.items()})
        other = {p for p, i in covered.items() if p not in shown or not is_same(self._context, i, shown[p])}
        other = self._differing(other, self._image_id)  # what the image itself has so is the work of its instructions
        stale = {covered[path].file.path for path in other if path in shown}
        missing = {covered[path].file.path for path in other if path not in shown}
        of_context = [path for path, item in covered.items() if self._is_of_context(mount.on_host(path), item)]
        shows_context = self._shows_context(mount)
        newest = _newest(_code_in(mount.source, code)) if of_context or shows_context else None
        return Mounted(
            destination=mount.destination,
            stale=_first(stale),
            missing=_first(missing),
            current=_first({item.file.path for item in covered.values()} - stale - missing),
            is_context=2 * len(of_context) >= len(covered) if covered else shows_context,
            replaced=_is_replaced(mount, pid),
            newest_change_at=None if newest is None else newest[0],
            newest_code="" if newest is None else newest[1],
        )

    def _is_of_context(self, there: str, placed: CopiedFile) -> bool:
        """Return whether the mount shows the file of the context itself, not a copy of it."""
        try:
            return os.path.samefile(there, self._context.root / placed.file.path)
        except OSError:
            return False


def _is_alike(image: ContainerFiles, container: ContainerFiles, path: str) -> bool:
    about = (image.stat(path), container.stat(path))
    if None in about or len({(item or {})["size"] for item in about}) > 1:
        return about == (None, None)
    files = (image.whole_file(path), container.whole_file(path))
    return len({file.identity for file in files if file is not None}) == 1


def _is_replaced(mount: _Mount, pid: int) -> bool | None:
    """Return whether a single mounted file is not the one at its source any more; None if unknown.

    The engine shows the new file; only the kernel knows what the process sees.
    """
    deleted = _is_deleted(pid, mount.destination) if os.path.isfile(mount.source) else None
    if not deleted:
        return deleted
    try:  # as root, the old file can be read: it may have been replaced by an equal one
        return not filecmp.cmp(f"/proc/{pid}/root{mount.destination}", mount.source, shallow=False)
    except OSError:
        return True


def _first(paths: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(paths))[:MAXIMUM_NAMED]


def _code_in(source: str, code: frozenset[str] | None) -> Iterable[str]:
    """Return the Python files at or below `source` that the process can have read: of `code`, or else all."""
    if code is not None:
        return [path for path in code if is_below(path, (source,))]
    return [source] if source.endswith(".py") else islice(_code_below(source), MAXIMUM_CODE_FILES)


def _newest(paths: Iterable[str]) -> tuple[float, str] | None:
    """Return when the newest of the files was written, and its path: by its mtime, because its ctime says less."""
    times = []
    for path in paths:
        with suppress(OSError):
            times.append((os.lstat(path).st_mtime, path))
    return max(times, default=None)


def _code_below(folder: str) -> Iterator[str]:
    """Yield the Python files below `folder`, without those that only tests and builds read."""
    for where, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".") and name not in _NO_SOURCE]
        yield from (os.path.join(where, name) for name in names if name.endswith(".py") and not _OF_TESTS.match(name))


def _is_deleted(pid: int, destination: str) -> bool | None:
    """Return whether the kernel calls what is mounted at `destination` deleted; None if it cannot be asked.

    Source: proc_pid_mountinfo(5): the fourth field is the mount's root and the fifth its place, with octal
    escapes: \\040 is a space.
    """
    try:
        with open(f"/proc/{pid}/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
            fields = [line.split(" ") for line in file.read(MAXIMUM_MOUNTINFO).splitlines()]
    except OSError:
        return None
    places = [
        (parts[3], re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), parts[4]))
        for parts in fields
        if len(parts) > 4
    ]
    roots = [root for root, place in places if place == destination]
    return roots[-1].endswith("//deleted") if roots else None
