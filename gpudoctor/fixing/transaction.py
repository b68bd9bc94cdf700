"""A fix is a transaction: one at a time in an environment, with a record by which it is undone, whatever ends it.

Folders below `.gpudoctor` in the environment: `pending` is the record of a change that has begun, `record` the one of
the last change that succeeded, for `--undo`. A `pending` that is found at the start is an interrupted change.
"""

import base64
import csv
import os
import shutil
import time
import zipfile
from collections.abc import Callable, Iterable, Iterator
from configparser import ConfigParser, ParsingError
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from packaging.utils import canonicalize_name

from gpudoctor.errors import GpudoctorError
from gpudoctor.files import created_without
from gpudoctor.fixing.environment import Inventory, read_inventory
from gpudoctor.fixing.installers import Installer, Resolution
from gpudoctor.fixing.programs import Failed, Refused
from gpudoctor.fixing.record import LARGEST_COPY_BYTES, digest_of, read_manifest, restore, scope_of, take
from gpudoctor.fixing.refusals import is_own_folder, refuse_if_full, refuse_if_used, refuse_unrecordable

FOLDER = ".gpudoctor"
WAIT_SECONDS = 60.0
_POLL_SECONDS = 0.2

Say = Callable[[str], None]


class Store:
    """The folder in an environment that has the records of its changes."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.path = Path(prefix, FOLDER)
        self.pending, self.record, self._old = (self.path / name for name in ("pending", "record", "record.old"))
        self.fetched = self.path / "fetched"

    @contextmanager
    def locked(self, say: Say) -> Iterator[int]:
        """Give the descriptor of the lock, which the commands that change the environment inherit.

        Raises:
            Refused: the folder is not this user's, or another fix does not end.
        """
        with created_without(0o077), suppress(FileExistsError):
            self.path.mkdir()
        if not is_own_folder(self.path):
            raise Refused(f"{self.path} is not a folder of yours: remove it")
        began, said = time.monotonic(), False
        while (lock := _lock(self.path / "lock")) is None:
            if time.monotonic() > began + WAIT_SECONDS:
                raise Refused(f"another gpudoctor fix is changing {self.prefix}: wait until it has ended")
            if not said:
                say(f"Another gpudoctor fix is changing {self.prefix}: waiting for it to end")
            said = True
            time.sleep(_POLL_SECONDS)
        with lock:
            self._tidy()
            yield lock.fileno()

    def is_interrupted(self) -> bool:
        """Return whether a change has begun and not ended. Without the lock it may still be running."""
        return is_own_folder(self.path) and self.pending.exists()

    def settle(self) -> list[str]:
        """Undo a change that has begun, and return what still differs after that."""
        if not self.pending.exists():
            return []
        left = restore(self.prefix, self.pending)
        if not left:
            shutil.rmtree(self.pending)
        return left

    def commit(self) -> None:
        """Keep the record of the change that succeeded in place of the one before."""
        if self.record.exists():
            self.record.rename(self._old)
        self.pending.rename(self.record)
        self._tidy()

    def _tidy(self) -> None:
        """Remove what is left of a step that was interrupted."""
        if self._old.exists() and not self.record.exists():
            self._old.rename(self.record)
        for path in (self._old, self.fetched, self.pending.with_name("pending.tmp")):
            shutil.rmtree(path, ignore_errors=True)

    def undo(self) -> list[str]:
        """Restore the environment as it was before the last change, and return what still differs.

        Raises:
            Refused: there is no record, or the environment has been changed since.
        """
        manifest = read_manifest(self.record)
        if manifest is None:
            raise Refused(f"no fix of {self.prefix} is recorded: there is nothing to undo")
        inventory = read_inventory(manifest["executable"])
        for name, version in manifest["after"].items():
            now = inventory.version_of(name)
            if now != version:
                raise Refused(
                    f"{name} was changed after the fix (from {version or 'not installed'} to {now or 'not installed'}):"
                    " to restore only a part would mix versions"
                )
        known = {*manifest["before"], *manifest["after"]}
        roots = {*manifest["roots"]}
        for item in inventory.distributions:
            tops = {*scope_of(self.prefix, inventory.folders, _paths(item.folder, item.files or ())).roots}
            shared = {top for top in roots & tops if not top.endswith("__pycache__")}
            if item.own and item.name not in known and shared:
                raise Refused(f"{item.name} was installed after the fix, into {min(shared)}: uninstall it first")
        self.record.rename(self.pending)
        return self.settle()


def apply(
    store: Store, installer: Installer, resolution: Resolution, is_worse: Callable[[], str], say: Say
) -> tuple[str, list[str]]:
    """Change the environment, and return why it was restored, "" if it was not, and what differs in that case.

    is_worse: asks the check again, and returns why the result must not stay; "" if it may.

    Raises:
        Refused: nothing was changed.
    """
    inventory = read_inventory(installer.inventory.executable)
    _refuse_outdated(inventory, resolution)
    installer.inventory = inventory
    names = {change.name for change in resolution.changes}
    refuse_unrecordable(inventory, names)
    store.fetched.mkdir()
    try:
        say("Fetching the packages")
        try:
            installer.fetch(resolution, store.fetched)
            new = [*_paths_of_fetched(store.fetched, inventory, resolution)]
        except Failed as error:
            raise Refused(f"{error}. Nothing was changed") from None
        old = [path for item in inventory.own(names) for path in _paths(item.folder, (*(item.files or ()), item.info))]
        scope = scope_of(store.prefix, inventory.folders, [*old, *(path for path, _ in new)])
        refuse_if_used(inventory, (str(path) for path in scope.paths(scope.roots)))
        refuse_if_full(store.prefix, sum(size for _, size in new) + _small_bytes(scope.paths(scope.roots)))
        say("Recording the environment")
        take(scope, store.pending, _about(inventory, resolution))
        why = _change(installer, resolution, store, is_worse, say)
        if why:
            return why, store.settle()
        store.commit()
        return "", []
    finally:
        shutil.rmtree(store.fetched, ignore_errors=True)


def _refuse_outdated(inventory: Inventory, resolution: Resolution) -> None:
    """Refuse a plan for versions that another fix, or the user, has changed since. Raises Refused.

    Applying it would replace the record that the other fix needs for its own undo.
    """
    for change in resolution.changes:
        now = inventory.version_of(change.name)
        if now != change.before:
            raise Refused(
                f"{change.name} was changed after the plan was made (from {change.before or 'not installed'} to"
                f" {now or 'not installed'}): run gpudoctor fix again"
            )


def _change(installer: Installer, resolution: Resolution, store: Store, is_worse: Callable[[], str], say: Say) -> str:
    """Apply, verify, and return what is wrong. An interruption leaves the pending record, which the caller settles."""
    broken = installer.broken()
    say("Applying the change")
    try:
        installer.apply(resolution, store.fetched)
    except Failed as error:
        return str(error)
    say("Verifying the change")
    inventory = read_inventory(installer.inventory.executable)
    for change in resolution.changes:
        if inventory.version_of(change.name) != change.after:
            return f"{change.name} is {inventory.version_of(change.name) or 'not installed'}, not {change.after}"
    damaged = damaged_files(inventory, {pin.name for pin in resolution.pins})
    if damaged:
        return f"{len(damaged)} installed files are not those of their package, such as {damaged[0]}"
    new = sorted(installer.broken() - broken)
    if new:
        return new[0]
    return is_worse()


def damaged_files(inventory: Inventory, names: set[str]) -> list[str]:
    """Return the files of these distributions that are missing, or not those that the package has a hash of."""
    return [path for item in inventory.own(names) for path in _damaged(item.folder, Path(item.info, "RECORD"))]


def _damaged(folder: str, listing: Path) -> Iterator[str]:
    with listing.open(encoding="utf-8", newline="") as lines:
        for row in csv.reader(lines):
            if len(row) < 2 or not row[1].startswith("sha256="):
                continue
            path = os.path.join(folder, row[0])
            try:
                digest = base64.urlsafe_b64encode(digest_of(Path(path)).digest()).rstrip(b"=").decode()
            except OSError:
                digest = ""
            if digest != row[1].removeprefix("sha256="):
                yield path


def _about(inventory: Inventory, resolution: Resolution) -> dict[str, object]:
    """Return what is noted of the environment: exact versions, where each came from, and what is to change."""
    own = [item for item in inventory.distributions if item.own]
    return {
        "executable": inventory.executable,
        "taken_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "before": {item.name: item.version for item in own},
        "sources": {item.name: item.direct_url for item in own if item.direct_url},
        "after": resolution.versions,
    }


def _paths_of_fetched(folder: Path, inventory: Inventory, resolution: Resolution) -> Iterator[tuple[str, int]]:
    """Yield each file that is going to be installed, and its size. Every wheel is read as a whole.

    Raises:
        Failed: a wheel is damaged, or another one than the plan has.
    """
    hashes = {pin.name: pin.sha256 for pin in resolution.pins if pin.sha256}
    for wheel in sorted(folder.glob("*.whl")):
        expected = hashes.get(canonicalize_name(wheel.name.split("-")[0]))
        if expected and digest_of(wheel).hexdigest() != expected:
            raise Failed(f"{wheel.name} is not the file that the index announced")
        try:
            with zipfile.ZipFile(wheel) as archive:
                bad = archive.testzip()
                members = [(info.filename, info.file_size) for info in archive.infolist()]
                members += [(f"bin/{name}", 0) for name in _programs(archive)]
        except (zipfile.BadZipFile, OSError, EOFError) as error:
            raise Failed(f"{wheel.name} is damaged: {error}") from None
        if bad is not None:
            raise Failed(f"{wheel.name} is damaged: {bad}")
        for name, size in members:
            yield from ((path, size) for path in _installed_as(name, inventory))
    for listing in sorted(folder.glob("*.dist-info/RECORD")):  # what uv unpacked
        with listing.open(encoding="utf-8", newline="") as lines:
            for row in csv.reader(lines):
                size = int(row[2]) if len(row) > 2 and row[2].isdecimal() else 0
                yield from ((path, size) for path in _installed_as(row[0], inventory))


def _programs(archive: zipfile.ZipFile) -> Iterator[str]:
    """Yield the programs that are made when the wheel is installed."""
    for listing in (name for name in archive.namelist() if name.endswith(".dist-info/entry_points.txt")):
        points = ConfigParser(delimiters=("=",), interpolation=None, strict=False)
        with suppress(ParsingError):
            points.read_string(archive.read(listing).decode("utf-8", "replace"))
        yield from (name for kind in ("console_scripts", "gui_scripts") if kind in points for name in points[kind])


def _installed_as(name: str, inventory: Inventory) -> Iterator[str]:
    """Yield where a file of a wheel may go."""
    first, _, rest = name.partition("/")
    if first.endswith(".data"):
        kind, _, rest = rest.partition("/")
        yield os.path.join(inventory.scripts if kind == "scripts" else inventory.prefix, rest)
        yield from (os.path.join(folder, rest) for folder in inventory.folders if kind.endswith("lib"))
        return
    yield from (os.path.join(folder, name) for folder in inventory.folders)
    if first == "bin":
        yield os.path.join(inventory.scripts, rest)


def _paths(folder: str, files: Iterable[str]) -> Iterator[str]:
    yield from (os.path.join(folder, file) for file in files)


def _small_bytes(roots: Iterable[Path]) -> int:
    """Return how much the copies of a record take, at most."""
    files = (Path(folder, name) for root in roots for folder, _, names in os.walk(root) for name in names)
    return sum(min(file.lstat().st_size, LARGEST_COPY_BYTES) for file in files)


def _lock(path: Path) -> IO[str] | None:
    """Return the lock, which lasts until it is closed; None if another process has it."""
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_WRONLY | getattr(os, "O_NOFOLLOW", 0), 0o600)
    except OSError as error:
        raise GpudoctorError(f"cannot write {path}: {error.strerror}") from None
    lock = os.fdopen(descriptor, "w")
    with suppress(ImportError):  # Windows has no such lock
        import fcntl

        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.close()
            return None
    return lock
