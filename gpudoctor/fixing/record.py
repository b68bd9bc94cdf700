"""The record of the part of an environment that a fix changes: its files as they were, and how they come back.

Small files are copied and large ones linked, so that it takes a moment and no space until the old files go. An edit in
place would change a linked file with its record: pip and uv never do that, and it is detected by its time.
"""

import hashlib
import json
import os
import shutil
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from gpudoctor.errors import GpudoctorError
from gpudoctor.files import created_without, read_bounded
from gpudoctor.model.record import record

SCHEMA = "gpudoctor/fix-record/1"
FOLDER = ".gpudoctor"
"""Of the records, in the environment."""
MANIFEST = "manifest.json"
LARGEST_COPY_BYTES = 64 * 1024
_MOST_MANIFEST_BYTES = 1 << 30
_WRITTEN_IN_PLACE = ("history", "state")  # conda adds lines to these files of conda-meta
_PRIVATE = 0o600
_TEMPORARY = ".gpudoctor-restored"
_BASES = (".", "..", os.path.join("..", "..", ".."))
"""What the paths of a record may be relative to: an environment, or the project that it is in."""


@record
class Scope:
    """What of an environment is recorded and restored, as paths below its root.

    roots: files and folders, with all that they contain; some need not exist.
    folders: those of packages, in which an interrupted pip leaves folders whose names begin with "~".
    links: whether small files are linked too: conda, which replaces files and never edits them, changes it.
    """

    prefix: Path
    roots: tuple[str, ...]
    folders: tuple[str, ...]
    links: bool = False

    def paths(self, entries: Iterable[str]) -> list[Path]:
        """Return the places of the entries."""
        return [self.prefix / entry for entry in entries]


def scope_of(prefix: str, folders: Sequence[str], paths: Iterable[str]) -> Scope:
    """Return the scope that has these paths: of a package its whole top folder, of anything else the file alone.

    A path that leads out of the environment is left out: neither pip nor gpudoctor changes what it names.
    """
    root = os.path.realpath(prefix)
    inside = [os.path.relpath(os.path.realpath(folder), root) for folder in folders]
    roots: dict[str, None] = {}
    for path in paths:
        real = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
        relative = os.path.relpath(os.path.normpath(real), root)
        if relative.startswith("..") or relative == "." or relative in inside:
            continue
        home = next((folder for folder in inside if relative.startswith(folder + os.sep)), None)
        if home is None:
            if not os.path.isdir(real) or os.path.islink(real):  # of a folder that others use too only its files
                roots[relative] = None
            continue
        top = os.path.join(home, os.path.relpath(relative, home).split(os.sep)[0])
        roots[top] = None
        if top == relative and top.endswith(".py"):
            roots[os.path.join(home, "__pycache__")] = None
    return Scope(prefix=Path(root), roots=tuple(sorted(roots)), folders=tuple(inside))


def take(scope: Scope, folder: Path, about: Mapping[str, Any]) -> None:
    """Record the scope in `folder`, which exists only if the record is complete. about: other data to save."""
    temporary = folder.with_name(f"{folder.name}.tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    saved = temporary / "files"
    with created_without(0o077):
        saved.mkdir(parents=True)
    entries = {}
    for number, (name, path) in enumerate(_walk(scope)):
        entries[name] = _describe(path)
        if entries[name]["kind"] == "file":
            entries[name]["saved"] = str(number)
            copied_up_to = 0 if scope.links and path.name not in _WRITTEN_IN_PLACE else LARGEST_COPY_BYTES
            may_link = os.sep in name and path.name not in _WRITTEN_IN_PLACE
            entries[name]["sha256"] = _save(path, saved / str(number), may_link and path.stat().st_size > copied_up_to)
    listings = {home: sorted(os.listdir(scope.prefix / home)) for home in scope.folders}
    above = {str(folder) for root in scope.roots for folder in Path(root).parents}
    absent = sorted(folder for folder in above if not (scope.prefix / folder).exists())
    content = {"schema": SCHEMA, **about, "roots": scope.roots, "folders": scope.folders, "listings": listings}
    content["absent"] = absent
    _write_synced(temporary / MANIFEST, json.dumps({**content, "entries": entries}))
    os.rename(temporary, folder)


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """Return the content of a record; None if it does not exist."""
    try:
        content: dict[str, Any] = json.loads(read_bounded(folder / MANIFEST, _MOST_MANIFEST_BYTES))
    except (OSError, ValueError):
        return None
    return content if content.get("schema") == SCHEMA and _is_inside(content) else None


def _is_inside(content: Mapping[str, Any]) -> bool:
    """Return whether every path of a record is one below the environment: it may have come with a copied folder."""
    names = (*content["roots"], *content["folders"], *content["listings"], *content["absent"], *content["entries"])
    saved = (entry.get("saved", "0") for entry in content["entries"].values())
    plain = (
        os.path.normpath(name) == name and not os.path.isabs(name) and name.split(os.sep)[0] != ".." for name in names
    )
    return content.get("base", ".") in _BASES and all(plain) and all(map(str.isdecimal, saved))


def restore(prefix: str, folder: Path) -> list[str]:
    """Restore the recorded files, and return what still differs. It can be repeated."""
    manifest = read_manifest(folder)
    if manifest is None:
        raise GpudoctorError(f"{folder} is not a record of this environment: remove it, and check the environment")
    scope = scope_in(manifest, prefix)
    entries = manifest["entries"]
    for home, names in manifest["listings"].items():
        for name in set(os.listdir(scope.prefix / home)) - {*names}:
            if name.startswith("~") or name.endswith(_TEMPORARY):
                _remove(scope.prefix / home / name)
    for name, path in [*_walk(scope)][::-1]:  # what is inside a folder before the folder
        if name not in entries or entries[name]["kind"] != _kind(path):
            _remove(path)
    for name in reversed(manifest["absent"]):
        with suppress(OSError):  # it is not there, or somebody put something into it
            (scope.prefix / name).rmdir()
    for name, entry in entries.items():
        _put_back(scope.prefix / name, entry, folder / "files")
    return differences(scope, entries)


def scope_in(manifest: Mapping[str, Any], prefix: str) -> Scope:
    """Return the scope that a record of the environment `prefix` has."""
    base = os.path.normpath(os.path.join(os.path.realpath(prefix), manifest.get("base", ".")))
    return Scope(prefix=Path(base), roots=tuple(manifest["roots"]), folders=tuple(manifest["folders"]))


def unrecorded(scope: Scope, entries: Mapping[str, Any]) -> Iterator[str]:
    """Yield the files that exist now and are not recorded, without what Python compiles by itself."""
    for name, path in _walk(scope):
        if name not in entries and not path.is_dir() and "__pycache__" not in path.parts:
            yield name


def differences(scope: Scope, entries: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the paths that are not as recorded, relative to the environment."""
    now = dict(_walk(scope))
    return sorted({*now} ^ {*entries} | {n for n, path in now.items() if n in entries and _differs(path, entries[n])})


def _walk(scope: Scope) -> Iterator[tuple[str, Path]]:
    """Yield each file, link and folder of the scope that exists, a folder before what is in it. Follows no link."""
    for root in scope.roots:
        path = scope.prefix / root
        if not os.path.lexists(path):
            continue
        yield root, path
        if path.is_dir() and not path.is_symlink():
            for folder, folders, files in os.walk(path):
                folders[:] = [name for name in folders if name != FOLDER]
                for name in sorted((*folders, *files)):
                    found = Path(folder, name)
                    yield os.path.relpath(found, scope.prefix), found


def _kind(path: Path) -> str:
    mode = path.lstat().st_mode
    return "link" if stat.S_ISLNK(mode) else "folder" if stat.S_ISDIR(mode) else "file"


def _describe(path: Path) -> dict[str, Any]:
    state, kind = path.lstat(), _kind(path)
    found: dict[str, Any] = {"kind": kind, "mode": stat.S_IMODE(state.st_mode)}
    if kind == "link":
        found["target"] = os.readlink(path)
    elif kind == "file":
        found |= {"size": state.st_size, "mtime_ns": state.st_mtime_ns, "inode": state.st_ino}
    return found


def _save(path: Path, saved: Path, may_link: bool) -> str:
    """Save a file and return its SHA-256, "" if it is linked.

    may_link: not for what its tool writes in place, such as a lock file.
    """
    if may_link:
        with suppress(OSError):  # this file system has no hard links
            os.link(path, saved)
            return ""
    shutil.copy2(path, saved)
    saved.chmod(_PRIVATE)  # such as a direct_url.json with a password; its own mode is in the manifest
    return digest_of(saved).hexdigest()


def digest_of(path: Path) -> "hashlib._Hash":
    """Return the SHA-256 of a file."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest


def _differs(path: Path, entry: Mapping[str, Any]) -> bool:
    found = _describe(path)
    if any(found.get(name) != entry.get(name) for name in ("kind", "mode", "target", "size", "mtime_ns")):
        return True
    same_inode = found.get("inode") == entry.get("inode")
    return (
        found["kind"] == "file"
        and not same_inode
        and bool(entry["sha256"])
        and digest_of(path).hexdigest() != entry["sha256"]
    )


def _put_back(path: Path, entry: Mapping[str, Any], saved: Path) -> None:
    if entry["kind"] == "folder":
        path.mkdir(parents=True, exist_ok=True)
        os.chmod(path, entry["mode"])
    elif entry["kind"] == "link":
        if not path.is_symlink() or os.readlink(path) != entry["target"]:
            _remove(path)
            path.parent.mkdir(parents=True, exist_ok=True)
            os.symlink(entry["target"], path)
    elif not path.exists() or _describe(path) != {name: entry[name] for name in _describe(path)}:
        _put_file_back(path, entry, saved / entry["saved"])


def _put_file_back(path: Path, entry: Mapping[str, Any], saved: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}{_TEMPORARY}")
    _remove(temporary)
    if entry["sha256"]:
        shutil.copy2(saved, temporary)
        os.chmod(temporary, entry["mode"])
        os.utime(temporary, ns=(entry["mtime_ns"], entry["mtime_ns"]))
    else:
        os.link(saved, temporary)
    os.replace(temporary, path)
    with suppress(FileNotFoundError):  # of two links to the same file the rename leaves both
        os.unlink(temporary)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        with suppress(FileNotFoundError):
            path.unlink()


def _write_synced(path: Path, text: str) -> None:
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _PRIVATE), "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
