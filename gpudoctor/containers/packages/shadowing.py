"""Installed copies of the packages that a project copies: Python may import them instead of the copied source.

An installed copy is imported by a program that pip installed (a script of /usr/local/bin), and by a script of another
folder than the one that the package was copied into; see start_command.py.
"""

import posixpath
from collections.abc import Mapping, Sequence
from typing import Any

from gpudoctor.containers.builds.copied_files import CopiedFile
from gpudoctor.containers.builds.tracing import ResolvedCopy
from gpudoctor.containers.images.base_images import environment_of
from gpudoctor.containers.images.facts import ImageFacts
from gpudoctor.containers.images.reader import Files
from gpudoctor.containers.packages.start_command import first_folders
from gpudoctor.model.record import record

MAXIMUM_PACKAGES = 20
MAXIMUM_MODULE_BYTES = 1 << 20

_GENERATED = ("_version.py", "version.py", "__version__.py")
"""Files that an installation may write again, of the project's name and version."""


@record
class Package:
    """A top-level package as it is copied.

    folder: in the image. modules: by their path below it. traced: the copies that bring them.
    """

    folder: str
    modules: Mapping[str, CopiedFile]
    traced: tuple[ResolvedCopy, ...]


def copied_packages(copies: Sequence[ResolvedCopy], installed_in: Sequence[str]) -> tuple[Package, ...]:
    """Return the top-level packages that are copied to other places than `installed_in`."""
    installed = tuple(f"{folder}/" for folder in installed_in)
    placed = [(item, traced) for traced in copies for item in traced.selection.placed]
    starts = {posixpath.dirname(item.image_path) for item, _ in placed if item.image_path.endswith("/__init__.py")}
    top = sorted(folder for folder in starts if posixpath.dirname(folder) not in starts)
    folders = [folder for folder in top if not folder.startswith(installed)][:MAXIMUM_PACKAGES]
    return tuple(_package(f"{folder}/", placed) for folder in folders)


def _package(start: str, placed: Sequence[tuple[CopiedFile, ResolvedCopy]]) -> Package:
    inside = [
        (item, traced)
        for item, traced in placed
        if item.image_path.startswith(start) and item.image_path.endswith(".py") and not item.file.link_target
    ]
    modules = {item.image_path.removeprefix(start): item for item, _ in inside}
    return Package(folder=start.rstrip("/"), modules=modules, traced=tuple(traced for _, traced in inside))


def shadowing(files: Files, folders: Sequence[str], facts: ImageFacts, config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of ProjectImage that describe installed copies older than the source that is also in the image.

    A package of the same name but with other modules is somebody else's. One that is like the source in the image is
    not older than that, and one that was installed after the source was copied was made of it.
    folders: that Python imports packages from. config: of the image or container, as the engine describes it.
    """
    paths = [
        (f"{folder}/{posixpath.basename(package.folder)}", package)
        for package in copied_packages(facts.plan.copies, folders)
        for folder in folders
    ]
    older = [(path, package) for path, package in paths if _is_older_copy(files, path, package, facts)]
    if not older:
        return {}
    first = first_folders(files, config)
    named = environment_of(config).get("PYTHONPATH", "").split(":")
    before = {posixpath.normpath(path) for path in (*(first or ()), *named) if path}
    later = tuple(path for path, package in older if posixpath.dirname(package.folder) not in before)
    return {"possibly_shadowing_packages" if first is None else "shadowing_packages": later}


def _is_older_copy(files: Files, folder: str, package: Package, facts: ImageFacts) -> bool:
    if files.stat(folder) is None:
        return False
    sizes = {f"{folder}/{relative}": item.file.size_bytes for relative, item in package.modules.items()}
    there = files.read([folder], sizes)
    modules = [path for path, file in there.items() if path.endswith(".py") and file.kind == "file"]
    shared = [path for path in modules if path in sizes]
    if 2 * len(shared) < len(modules) or all(path.endswith("/__init__.py") for path in shared):
        return False
    sources = {path: package.modules[path[len(folder) + 1 :]] for path in shared}
    differing = {
        path: source
        for path, source in sources.items()
        if posixpath.basename(path) not in _GENERATED
        and there[path].digest != facts.plan.context.digest(source.file)
        and files.text(path, MAXIMUM_MODULE_BYTES) != files.text(source.image_path, MAXIMUM_MODULE_BYTES)
    }
    moments = [facts.moment(item) for item in package.traced if item.later_run]
    is_of_later_run = any(m is None or there[path].changed_at >= m.earliest for path in differing for m in moments)
    return bool(differing) and not is_of_later_run
