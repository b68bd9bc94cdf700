"""The records of the changes of an environment, and the lock that lets one fix at a time change it.

Folders below `.gpudoctor` in the environment: `pending` is the record of a change that has begun, `record` the one of
the last change that succeeded, for `--undo`. A `pending` that is found at the start is an interrupted change.
"""

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from gpudoctor.errors import GpudoctorError
from gpudoctor.files import created_without, locked, write_whole
from gpudoctor.fixing.environment import Inventory, read_inventory
from gpudoctor.fixing.installed_files import damaged_files, paths_of, users_files
from gpudoctor.fixing.programs import Refused
from gpudoctor.fixing.record import (
    FOLDER,
    MANIFEST,
    Scope,
    digest_of,
    read_manifest,
    restore,
    scope_in,
    scope_of,
)
from gpudoctor.fixing.refusals import is_own_folder

AFTER = "after.json"
WAIT_SECONDS = 60.0
_POLL_SECONDS = 0.2

Say = Callable[[str], None]


class Store:
    """The folder in an environment that has the records of its changes."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.path = Path(prefix, FOLDER)
        self.pending, self.record, self._old = (self.path / name for name in ("pending", "record", "record.old"))
        self._settled = self.path / "settled"
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
            raise Refused(f"{self.path} does not belong to you: remove it")
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

    def identity(self) -> str:
        """Return the hash of the last change's record; "" if there is none."""
        path = self.record / MANIFEST
        return digest_of(path).hexdigest() if path.is_file() else ""

    def settle(self) -> list[str]:
        """Undo a change that has begun, and return what still differs after that."""
        if not self.pending.exists():
            return []
        left = restore(self.prefix, self.pending)
        if not left:
            self.pending.rename(self._settled)  # at once: half a record would stop every later fix
            shutil.rmtree(self._settled)
        return left

    def commit(self) -> None:
        """Keep the record of the change that succeeded in place of the one before."""
        if self.record.exists():
            self.record.rename(self._old)
        self._note_whole()
        self.pending.rename(self.record)
        self._tidy()

    def _note_whole(self) -> None:
        """Note the project's files and the packages after the change, so that an undo replaces no later ones."""
        manifest = read_manifest(self.pending)
        if manifest is not None and manifest.get("whole"):
            packages = _versions(read_inventory(manifest["executable"]))
            after = {"files": _digests(scope_in(manifest, self.prefix)), "packages": packages}
            write_whole(self.pending / AFTER, json.dumps(after), private=True)

    def _refuse_outdated_whole(self, manifest: Mapping[str, Any], inventory: Inventory) -> None:
        """Refuse to restore a whole project or environment that was changed since. Raises Refused."""
        scope = scope_in(manifest, self.prefix)
        after = json.loads((self.record / AFTER).read_text(encoding="utf-8"))
        changed = sorted(name for name, digest in _digests(scope).items() if digest != after["files"].get(name))
        expected, installed = after["packages"], _versions(inventory)
        packages = sorted(name for name in {*expected, *installed} if expected.get(name) != installed.get(name))
        files = users_files(inventory, scope, manifest["entries"])
        for name in (*changed, *packages, *files):
            raise Refused(f"{name} was changed after the fix: undo that first, or keep the fix")

    def _refuse_edited(self, manifest: Mapping[str, Any], inventory: Inventory) -> None:
        """Refuse to remove files of the changed packages that the user has edited or added since. Raises Refused."""
        scope = scope_in(manifest, self.prefix)
        edited = damaged_files(inventory, manifest["after"])
        for name in (*edited, *users_files(inventory, scope, manifest["entries"])):
            path = os.path.join(scope.prefix, name)
            raise Refused(
                f"{path} was changed after the fix, and the undo would remove it: move it away, or keep the fix"
            )

    def _tidy(self) -> None:
        """Remove what is left of a step that was interrupted."""
        if self._old.exists() and not self.record.exists():
            self._old.rename(self.record)
        for path in (self._old, self._settled, self.fetched, self.pending.with_name("pending.tmp")):
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
            now = inventory.installed_as(name)
            if now != version:
                raise Refused(
                    f"{name} was changed after the fix (from {version or 'not installed'} to {now or 'not installed'}):"
                    " restoring only a part would mix versions"
                )
        if manifest.get("whole"):
            self._refuse_outdated_whole(manifest, inventory)
        else:
            self._refuse_edited(manifest, inventory)
        known = {*manifest["before"], *manifest["after"]}
        roots = {*manifest["roots"]}
        for item in inventory.distributions:
            tops = {*scope_of(self.prefix, inventory.folders, paths_of(item.folder, item.files or ())).roots}
            shared = {top for top in roots & tops if not top.endswith("__pycache__")}
            if item.own and item.name not in known and shared:
                raise Refused(f"{item.name} was installed after the fix, into {min(shared)}: uninstall it first")
        self.record.rename(self.pending)
        return self.settle()


def _versions(inventory: Inventory) -> dict[str, str]:
    return {item.name: item.version for item in inventory.distributions if item.own}


def _digests(scope: Scope) -> dict[str, str]:
    """Return the hashes of the project's own files."""
    own = (name for name in scope.roots if os.sep not in name and (scope.prefix / name).is_file())
    return {name: digest_of(scope.prefix / name).hexdigest() for name in own}


def _lock(path: Path) -> IO[str] | None:
    """Return the lock, which lasts until it is closed; None if another process has it."""
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_WRONLY | getattr(os, "O_NOFOLLOW", 0), 0o600)
    except OSError as error:
        raise GpudoctorError(f"cannot write {path}: {error.strerror}") from None
    return locked(os.fdopen(descriptor, "w"))
