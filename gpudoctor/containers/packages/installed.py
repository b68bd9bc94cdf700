"""The Python packages in an image: where Python imports from, and which versions of what are there. Nothing is run."""

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from gpudoctor.containers.images.base_images import environment_of
from gpudoctor.containers.images.reader import Files
from gpudoctor.containers.packages.start_command import command_of
from gpudoctor.model import CudaVersion, PackageVersion, Torch
from gpudoctor.model.record import record
from gpudoctor.parsers.requirements_files import normalise
from gpudoctor.parsers.torch_version_file import build_of_version, parse_torch_version_file

PREFIXES = ("/usr/local", "/opt/conda", "/opt/venv", "/venv", "/app/.venv", "/root/.venv", "/usr")
"""Where images keep a Python, in addition to the folders that their command and environment name."""

SYSTEM = ("/usr/local", "/usr")
"""Prefixes whose Python also searches its user's home folder. That of a virtual environment does not."""

VERSIONS = tuple(f"3.{minor}" for minor in range(15, 7, -1))
MAXIMUM_PREFIXES = 20
MAXIMUM_PASSWD_BYTES = 256 << 10

LISTED_BYTES = 48 << 20
"""A folder of packages that is larger is not listed: single files of it are asked for."""

LARGEST_VERSION_FILE_BYTES = 64 << 10
LARGEST_METADATA_BYTES = 1 << 20
SEARCHED_BYTES = 16 << 20
"""A folder without the package torch that is larger is not read for its metadata: it may have gigabytes."""

_METADATA = re.compile(r"(?P<name>[A-Za-z0-9][\w.]*)-(?P<version>\d[\w.!+]*?)(?:-py3[\d.]*)?\.(?:dist|egg)-info")
_VERSION = re.compile(r"""^(?:__version__|version|VERSION)\s*(?::\s*str\s*)?=\s*['"](\d[\w.+!]*)['"]""", re.MULTILINE)
_VERSION_FILES = ("version.py", "_version.py", "__version__.py", "__init__.py")


@record
class Distribution:
    """A distribution that is installed. metadata: its folder of metadata; "" if it was not found by that."""

    version: str
    metadata: str = ""


class PackageFolder:
    """A folder that Python imports packages from."""

    def __init__(self, files: Files, path: str) -> None:
        self.path = path
        self._files = files

    @cached_property
    def distributions(self) -> Mapping[str, Distribution] | None:
        """Return its distributions by normalised name; None if it is too large to list."""
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
        """Return the version of the Python of the first folder that shows it, "3.11"; "" if none does."""
        found = (re.search(r"/python(3\.\d{1,2})/", folder.path) for folder in self.folders)
        return next((match[1] for match in found if match is not None), "")

    @property
    def is_whole(self) -> bool:
        """Return whether all installed packages are known."""
        return bool(self.folders) and all(folder.distributions is not None for folder in self.folders)

    def find(self, name: str, wanted: str = "") -> Distribution | None:
        """Return the distribution `name`; None if it is not installed, or (see `is_whole`) was not found.

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
    """Return the packages that the image has. config: of the image or container, as the engine describes it."""
    return Packages(files, [PackageFolder(files, path) for path in package_paths(files, config)])


def package_paths(files: Files, config: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the existing package folders, in the order in which the image's program searches them.

    config: of the image or container, as the engine describes it.
    """
    environment = environment_of(config)
    named = (posixpath.normpath(path) for path in environment.get("PYTHONPATH", "").split(":") if path.startswith("/"))
    candidates = dict.fromkeys((*named, *_installed(files, config, environment)))
    return tuple(path for path in candidates if files.stat(path) is not None)


def _installed(files: Files, config: Mapping[str, Any], environment: Mapping[str, str]) -> Iterator[str]:
    """Yield where packages may be installed: next to each Python, and for Debian's own in places of its own."""
    home = f"{_home(files, config, environment)}/.local"
    has_home = files.stat(f"{home}/lib") is not None
    for prefix in _prefixes(config, environment):
        versions = _versions(files, prefix, environment)
        if has_home and prefix in SYSTEM:
            yield from (f"{home}/lib/python{version}/site-packages" for version in versions)
        if prefix == "/usr":
            yield from (f"/usr/local/lib/python{version}/dist-packages" for version in versions)
            yield "/usr/lib/python3/dist-packages"
        yield from (f"{prefix}/lib/python{version}/site-packages" for version in versions)


def _prefixes(config: Mapping[str, Any], environment: Mapping[str, str]) -> tuple[str, ...]:
    programs = [word for word in command_of(config) if re.fullmatch(r"/.+/bin/[^/]+", word)]
    named = [environment.get(name, "") for name in ("VIRTUAL_ENV", "CONDA_PREFIX", "CONDA_DIR")]
    on_path = [path for path in environment.get("PATH", "").split(":") if path.endswith("/bin") and path != "/bin"]
    here = f"{str(config.get('WorkingDir') or '/').rstrip('/')}/.venv"
    found = (
        *(posixpath.dirname(posixpath.dirname(program)) for program in programs),
        *named,
        *(posixpath.dirname(path) for path in on_path),
        here,
        *PREFIXES,
    )
    return tuple(dict.fromkeys(path.rstrip("/") for path in found if path.startswith("/")))[:MAXIMUM_PREFIXES]


def _versions(files: Files, prefix: str, environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the versions that may be below `prefix`: the one its link names, else all; () if it has no folder."""
    if files.stat(f"{prefix}/lib") is None:
        return ()
    about = files.stat(f"{prefix}/bin/python3")
    match = re.search(r"python(3\.\d{1,2})$", str((about or {}).get("linkTarget") or ""))
    named = match[1] if match else ".".join(environment.get("PYTHON_VERSION", "").split(".")[:2])
    return (named,) if re.fullmatch(r"3\.\d{1,2}", named) else VERSIONS


def _home(files: Files, config: Mapping[str, Any], environment: Mapping[str, str]) -> str:
    """Return the home folder of the image's user, as the engine finds it."""
    user = str(config.get("User") or "0").partition(":")[0]
    if environment.get("HOME", "").startswith("/"):
        return environment["HOME"].rstrip("/")
    if user in ("0", "root"):
        return "/root"
    text = files.text("/etc/passwd", MAXIMUM_PASSWD_BYTES) or ""
    users = (line.split(":") for line in text.splitlines())
    homes = (parts[5] for parts in users if len(parts) > 6 and user in (parts[0], parts[2]))
    return next(homes, f"/home/{user}").rstrip("/")


def find_torch(files: Files, config: Mapping[str, Any]) -> Torch | None:
    """Return the PyTorch that a program of the image or container would import; None if none is found.

    config: of it, as the engine describes it.

    Raises:
        ValueError: its version.py is another file.
    """
    paths = package_paths(files, config)
    for path in paths:
        text = files.text(f"{path}/torch/version.py", LARGEST_VERSION_FILE_BYTES)
        if text is not None:
            file = parse_torch_version_file(text)
            return _torch(f"{path}/torch", file.version, file.build, file.cuda_version)
    for path in paths:
        names = map(_METADATA.fullmatch, files.names(path, SEARCHED_BYTES) or ())
        version = next((match["version"] for match in names if match is not None and match["name"] == "torch"), None)
        if version is not None:
            return _torch(path, version, *build_of_version(version))
    return None


def _torch(location: str, version: str | None, build: str | None, cuda_version: CudaVersion | None) -> Torch:
    known = PackageVersion(version) if version else None
    return Torch(installed=True, version=known, build=build, cuda_version=cuda_version, location=location)
