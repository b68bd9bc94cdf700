"""What the project in the working directory asks for. Only this folder is read, not those above it."""

import re
from collections.abc import Mapping
from typing import Any

from gpudoctor.model import Project, Requirement
from gpudoctor.probes.reading import Facts, file_name, value

FILES = (
    *("requirements*.txt", "requirements/*.txt", "pyproject.toml", "setup.cfg", "environment.yml"),
    "environment.yaml",
)
MOST_FILES = 50
MOST_REQUIREMENTS = 2000
PLATFORMS = {
    "linux": {"sys_platform": "linux", "platform_system": "Linux", "os_name": "posix"},
    "darwin": {"sys_platform": "darwin", "platform_system": "Darwin", "os_name": "posix"},
    "win32": {"sys_platform": "win32", "platform_system": "Windows", "os_name": "nt"},
}


def reading_list(directory: str) -> Mapping[str, Any]:
    """Return what to read for the section."""
    folder = re.sub(r"([*?[])", r"[\1]", directory)
    return {"files": [f"{folder}/{name}" for name in FILES], "values": ["platform", "uname"]}


def parse_project(facts: Facts) -> Project:
    """Return the section. A file or line that cannot be read is skipped."""
    files = facts.get("files", {})
    texts = {path: files[path]["text"] for path in sorted(files) if "text" in files[path]}
    platform = _platform(facts)
    found = [
        requirement for path in list(texts)[:MOST_FILES] for requirement in _requirements(path, texts[path], platform)
    ]
    return Project(requirements=tuple(dict.fromkeys(found))[:MOST_REQUIREMENTS])


def _platform(facts: Facts) -> Mapping[str, str]:
    """Return the values of those markers that the machine decides."""
    machine = (value(facts, "uname") or {}).get("machine")
    platform = PLATFORMS.get(value(facts, "platform") or "", {})
    return {**platform, "platform_machine": machine} if machine else platform


def _requirements(path: str, text: str, platform: Mapping[str, str]) -> tuple[Requirement, ...]:
    from gpudoctor.parsers import conda, requirements_files

    name = file_name(path)
    try:
        if name.endswith(".txt"):
            source = f"requirements/{name}" if path.endswith(f"/requirements/{name}") else name
            return requirements_files.parse_requirements_txt(text, source, platform)
        if name == "pyproject.toml":
            return requirements_files.parse_pyproject(text, platform)
        if name == "setup.cfg":
            return requirements_files.parse_setup_cfg(text, platform)
        return conda.parse_conda_environment(text, name, platform)
    except ValueError:
        return ()
