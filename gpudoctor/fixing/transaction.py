"""A fix is a transaction: recorded before it begins, verified after it, and undone whatever ends it."""

import csv
import os
import shutil
import time
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from configparser import ConfigParser, ParsingError
from contextlib import suppress
from pathlib import Path

from packaging.utils import canonicalize_name

from gpudoctor.fixing.environment import Inventory, read_inventory
from gpudoctor.fixing.imports import TOO_SLOW, not_importable
from gpudoctor.fixing.installed_files import damaged_files, paths_of
from gpudoctor.fixing.installers import Installer
from gpudoctor.fixing.programs import Failed, Refused
from gpudoctor.fixing.record import LARGEST_COPY_BYTES, Scope, digest_of, scope_of, take
from gpudoctor.fixing.refusals import refuse_if_full, refuse_if_used, refuse_unrecordable
from gpudoctor.fixing.resolution import Resolution
from gpudoctor.fixing.store import Say, Store
from gpudoctor.privacy import mask_secrets


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
    if installer.name not in ("conda", "pixi"):  # what they install is recorded as a whole
        refuse_unrecordable(inventory, names)
    old = [path for item in inventory.own(names) for path in paths_of(item.folder, (*(item.files or ()), item.info))]
    _refuse_if_used(inventory, scope_of(store.prefix, inventory.folders, old))  # before a long download
    store.fetched.mkdir()
    try:
        say("Fetching the packages")
        try:
            installer.fetch(resolution, store.fetched)
            new = [*_paths_of_fetched(store.fetched, inventory, resolution)]
        except Failed as error:
            raise Refused(f"{str(error).rstrip('.')}. Nothing was changed") from None
        touched = scope_of(store.prefix, inventory.folders, [*old, *(path for path, _ in new)])
        _refuse_if_used(inventory, touched)
        scope = installer.whole_scope() or touched
        kind = {"whole": scope is not touched, "base": os.path.relpath(scope.prefix, touched.prefix)}
        recorded = 0 if scope.links else _small_bytes(scope.paths(scope.roots))
        refuse_if_full(store.prefix, recorded + sum(_taken_bytes(*file) for file in new))
        say("Recording the environment")
        take(scope, store.pending, {**_about(inventory, resolution, installer.environ), **kind})
        try:
            why = _change(installer, resolution, store, is_worse, say)
        except Failed as error:
            why = str(error)
        if why:
            return why, store.settle()
        store.commit()
        return "", []
    finally:
        shutil.rmtree(store.fetched, ignore_errors=True)


def _refuse_if_used(inventory: Inventory, scope: Scope) -> None:
    """Refuse to change files that a process has loaded. Raises Refused."""
    refuse_if_used(inventory, map(str, scope.paths(scope.roots)))


def _refuse_outdated(inventory: Inventory, resolution: Resolution) -> None:
    """Refuse a plan for versions that another fix, or the user, has changed since. Raises Refused.

    Applying it would replace the record that the other fix needs for its own undo.
    """
    for change in resolution.changes:
        now = inventory.installed_as(change.name)
        if now != change.before:
            raise Refused(
                f"{change.name} was changed after the plan was made (from {change.before or 'not installed'} to"
                f" {now or 'not installed'}): run gpudoctor fix again"
            )


def _change(installer: Installer, resolution: Resolution, store: Store, is_worse: Callable[[], str], say: Say) -> str:
    """Apply, verify, and return what is wrong. An interruption leaves the pending record, which the caller settles.

    Raises:
        Failed: a command failed.
    """
    broken = installer.broken()
    names = {change.name for change in resolution.changes}
    unusable = not_importable(installer.inventory, names, installer.environ)
    say("Applying the change")
    installer.apply(resolution, store.fetched)
    say("Verifying the change")
    inventory = read_inventory(installer.inventory.executable)
    for change in resolution.changes:
        now = inventory.installed_as(change.name)
        if now != change.after:
            return f"{change.name} is {now or 'not installed'}, not {change.after}"
    damaged = damaged_files(inventory, {pin.name for pin in resolution.pins})
    if damaged:
        return f"{len(damaged)} installed files are not those of their package, such as {damaged[0]}"
    new = sorted(installer.broken() - broken)
    if new:
        return new[0].rstrip(".")
    for name, why in not_importable(inventory, names, installer.environ).items():
        if name not in unusable and why != TOO_SLOW:
            return f"{name} {inventory.version_of(name)} cannot be imported: {why}"
        before = "" if why == TOO_SLOW else " cannot be imported, before the change and after it"
        say(f"{name}{before}: {why}")
    return is_worse()


def _about(inventory: Inventory, resolution: Resolution, environ: Mapping[str, str]) -> dict[str, object]:
    """Return what is noted of the environment: versions, where each came from, constraints, and what is to change.

    No restore reads the addresses, so their passwords are left out.
    """
    own = [item for item in inventory.distributions if item.own]
    constraints = [name for name in ("PIP_CONSTRAINT", "UV_CONSTRAINT") if name in environ]
    return {
        "executable": inventory.executable,
        "taken_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "before": {item.name: item.version for item in own},
        "sources": {item.name: mask_secrets(item.direct_url) for item in own if item.direct_url},
        "constraints": {name: mask_secrets(environ[name]) for name in constraints},
        "after": resolution.versions,
    }


def _paths_of_fetched(folder: Path, inventory: Inventory, resolution: Resolution) -> Iterator[tuple[str, int]]:
    """Yield each file that is going to be installed, and its size. Every wheel is read as a whole.

    Raises:
        Failed: a wheel is damaged, or is not the one in the plan.
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
                if not (folder / row[0].split("/")[0] / "__init__.py").exists():  # of no package: perhaps its data
                    yield os.path.join(inventory.prefix, row[0]), 0


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


def _taken_bytes(path: str, size: int) -> int:
    """Return how much a new file takes: pip also compiles modules, into files of about the same size."""
    return 2 * size if path.endswith(".py") else size


def _small_bytes(roots: Iterable[Path]) -> int:
    """Return how much the copies of a record take, at most."""
    files = (Path(folder, name) for root in roots for folder, _, names in os.walk(root) for name in names)
    return sum(min(file.lstat().st_size, LARGEST_COPY_BYTES) for file in files)
