"""The Python packages in an image: which versions of what are installed, without running anything."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from gpudoctor.containers.images.reader import Files
from gpudoctor.containers.packages.folders import package_paths
from gpudoctor.model.record import record
from gpudoctor.parsers.requirements_files import normalise

LISTED_BYTES = 48 << 20
"""A folder of packages that is larger is not listed: single files of it are asked for."""

LARGEST_VERSION_FILE_BYTES = 64 << 10
LARGEST_METADATA_BYTES = 1 << 20

_METADATA = re.compile(r"(?P<name>[A-Za-z0-9][\w.]*)-(?P<version>\d[\w.!+]*?)(?:-py3[\d.]*)?\.(?:dist|egg)-info")
_VERSION = re.compile(r"""^(?:__version__|version|VERSION)\s*(?::\s*str\s*)?=\s*['"](\d[\w.+!]*)['"]""", re.MULTILINE)
_VERSION_FILES = ("version.py", "_version.py", "__version__.py", "__init__.py")


@record
class Distribution:
    """A distribution that is installed. metadata: its folder of metadata; "" where it was not found by that."""

    version: str
    metadata: str = ""


class PackageFolder:
    """A folder that Python imports packages from."""

    def __init__(self, files: Files, path: str) -> None:
        self.path = path
        self._files = files

    @cached_property
    def distributions(self) -> Mapping[str, Distribution] | None:
        """Return those in it by their normalised names; None where it is too large to be listed."""
        names = self._files.names(self.path, LISTED_BYTES)
        if names is None:
            return None
        found = (match for match in map(_METADATA.fullmatch, names) if match is not None)
        return {
            normalise(match["name"]): Distribution(version=match["version"], metadata=f"{self.path}/{match[0]}")
            for match in found
        }

    def asked_for(self, name: str, wanted: str) -> Distribution | None:
        """Return one distribution, by its metadata of version `wanted` or by the version that its package names."""
        module = name.replace("-", "_")
        spellings = dict.fromkeys((module, name, module.capitalize(), name.replace("-", ".")))
        for metadata in (f"{self.path}/{spelling}-{wanted}.dist-info" for spelling in spellings if wanted):
            if self._files.stat(metadata) is not None:
                return Distribution(version=wanted, metadata=metadata)
        for file in _VERSION_FILES:
            text = self._files.text(f"{self.path}/{module}/{file}", LARGEST_VERSION_FILE_BYTES)
            match = _VERSION.search(text) if text else None
            if match is not None:
                return Distribution(version=match[1])
        return None


class Packages:
    """What is installed in the folders of an image, the first of them first."""

    def __init__(self, files: Files, folders: Sequence[PackageFolder]) -> None:
        self._files = files
        self.folders = tuple(folders)

    @property
    def python_version(self) -> str:
        """Return the version of the Python of the first folder that tells it, "3.11"; "" where none does."""
        found = (re.search(r"/python(3\.\d{1,2})/", folder.path) for folder in self.folders)
        return next((match[1] for match in found if match is not None), "")

    @property
    def is_whole(self) -> bool:
        """Return whether everything that is installed is known."""
        return bool(self.folders) and all(folder.distributions is not None for folder in self.folders)

    def find(self, name: str, wanted: str = "") -> Distribution | None:
        """Return the distribution `name`; None where it is not installed, or (see `is_whole`) was not found.

        wanted: a version to ask for first, "" for none, where a folder is too large to be listed.
        """
        for folder in self.folders:
            listed = folder.distributions
            found = folder.asked_for(name, wanted) if listed is None else listed.get(name)
            if found is not None:
                return found
        return None

    def required_by(self, distribution: Distribution) -> Iterator[str]:
        """Yield what the metadata of the distribution require, with markers: "cudalike; extra == 'gpu'"."""
        text = None
        if distribution.metadata:
            text = self._files.text(f"{distribution.metadata}/METADATA", LARGEST_METADATA_BYTES)
        for line in (text or "").splitlines():
            if not line.strip():
                return  # the description follows
            name, _, value = line.partition(":")
            if name == "Requires-Dist":
                yield value.strip()


def packages_of(files: Files, config: Mapping[str, Any]) -> Packages:
    """Return the packages that the image has.

    config: of the image or container, as the engine describes it.
    """
    return Packages(files, [PackageFolder(files, path) for path in package_paths(files, config)])
