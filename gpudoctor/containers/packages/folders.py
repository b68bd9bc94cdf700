"""The folders of an image that Python imports packages from, in its order, found by asking for a few paths."""

import posixpath
import re
from collections.abc import Iterator, Mapping
from typing import Any

from gpudoctor.containers.images.base_images import environment_of
from gpudoctor.containers.images.reader import Files
from gpudoctor.containers.packages.start_command import command_of

PREFIXES = ("/usr/local", "/opt/conda", "/opt/venv", "/venv", "/app/.venv", "/root/.venv", "/usr")
"""Where images keep a Python, besides the folders that their command and environment name."""

SYSTEM = ("/usr/local", "/usr")
"""Prefixes of which the Python looks into the home folder of its user too; that of a virtual environment does not."""

VERSIONS = tuple(f"3.{minor}" for minor in range(15, 7, -1))
MAXIMUM_PREFIXES = 20
MAXIMUM_PASSWD_BYTES = 256 << 10


def package_paths(files: Files, config: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the folders of packages that are there, those that the image's program would take first.

    config: of the image or container, as the engine describes it.
    """
    environment = environment_of(config)
    named = (posixpath.normpath(path) for path in environment.get("PYTHONPATH", "").split(":") if path.startswith("/"))
    candidates = dict.fromkeys((*named, *_installed(files, config, environment)))
    return tuple(path for path in candidates if files.stat(path) is not None)


def _installed(files: Files, config: Mapping[str, Any], environment: Mapping[str, str]) -> Iterator[str]:
    """Yield where packages may be installed: beside each Python, and for Debian's own in places of its own."""
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
    """Return the versions that may be below `prefix`: the one its link tells, else all; () where it has no folder."""
    if files.stat(f"{prefix}/lib") is None:
        return ()
    about = files.stat(f"{prefix}/bin/python3")
    match = re.search(r"python(3\.\d{1,2})$", str((about or {}).get("linkTarget") or ""))
    told = match[1] if match else ".".join(environment.get("PYTHON_VERSION", "").split(".")[:2])
    return (told,) if re.fullmatch(r"3\.\d{1,2}", told) else VERSIONS


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
