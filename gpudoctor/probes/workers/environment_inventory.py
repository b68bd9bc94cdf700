"""Every distribution in a Python environment, whose it is, and who may change it: for `gpudoctor fix`.

Standard library only, from Python 3.8 on: it runs under the interpreter of that environment. Nothing is imported.
"""

from __future__ import annotations

import json
import os
import platform
import re
import sys
import sysconfig

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterator, List, Mapping, Optional

    Facts = Dict[str, Any]

MOST_METADATA_BYTES = 256 * 1024
MOST_RECORD_BYTES = 64 * 2**20  # that of torch 2.15 has 2 MB


def collect(_arguments: Mapping[str, Any]) -> Facts:
    """Return the facts. `own` distributions are in the environment's own folders, the others are inherited."""
    paths = sysconfig.get_paths()
    own = list(dict.fromkeys((paths["purelib"], paths["platlib"])))
    is_virtual = sys.prefix != sys.base_prefix
    marker = os.path.join(sysconfig.get_path("stdlib", vars={"base": sys.base_prefix}), "EXTERNALLY-MANAGED")
    return {
        "executable": sys.executable,
        "prefix": sys.prefix,
        "is_virtual": is_virtual,
        "externally_managed": not is_virtual and os.path.exists(marker),
        "conda": os.path.isdir(os.path.join(sys.prefix, "conda-meta")),
        "conda_base": os.path.isdir(os.path.join(sys.prefix, "condabin")),
        "folders": own,
        "scripts": paths["scripts"],
        "markers": _markers(),
        "distributions": [
            *(found for folder in _folders(own) for found in _distributions(folder, folder in own)),
            *_conda_packages(os.path.join(sys.prefix, "conda-meta")),
        ],
    }


def _folders(own: List[str]) -> Iterator[str]:
    seen = {}  # type: Dict[str, str]
    for folder in (*own, *sys.path):
        if folder and os.path.isdir(folder):
            seen.setdefault(os.path.realpath(folder), folder)
    yield from seen.values()


def _distributions(folder: str, own: bool) -> Iterator[Facts]:
    for entry in sorted(os.listdir(folder)):
        path = os.path.join(folder, entry)
        file = {".dist-info": "METADATA", ".egg-info": "PKG-INFO"}.get(os.path.splitext(entry)[1])
        text = _read(os.path.join(path, file) if os.path.isdir(path) else path, MOST_METADATA_BYTES) if file else None
        if text is None:
            continue
        headers = re.split(r"\r?\n\r?\n", text, maxsplit=1)[0]
        direct = _read(os.path.join(path, "direct_url.json"), MOST_METADATA_BYTES) or ""
        yield {
            "name": re.sub(r"[-_.]+", "-", _header(headers, "Name")).lower(),
            "version": _header(headers, "Version"),
            "requires": re.findall(r"(?m)^Requires-Dist:[ \t]*(.+?)[ \t\r]*$", headers),
            "info": path,
            "record": _read(os.path.join(path, "RECORD"), MOST_RECORD_BYTES) if own else None,
            "installer": (_read(os.path.join(path, "INSTALLER"), 64) or "").strip(),
            "direct_url": direct,
            "own": own,
        }


def _conda_packages(folder: str) -> Iterator[Facts]:
    """Yield what conda installed, named "conda:NAME", in versions as conda writes them: "2.5.1=cuda126_py311"."""
    for entry in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
        text = _read(os.path.join(folder, entry), MOST_RECORD_BYTES) if entry.endswith(".json") else None
        try:
            package = json.loads(text or "")
            files = ['"../%s",,' % path.replace('"', '""') for path in package["files"]]
            name, version = "conda:" + package["name"], package["version"] + "=" + package["build"]
        except (ValueError, KeyError, TypeError, AttributeError):
            continue
        yield {
            "name": name,
            "version": version,
            "requires": [],
            "info": os.path.join(folder, entry),
            "record": "\n".join(files),
            "installer": "conda",
            "direct_url": "",
            "own": True,
        }


def _header(headers: str, name: str) -> str:
    match = re.search(r"(?m)^" + name + r":[ \t]*(.+?)[ \t\r]*$", headers)
    return match[1] if match else ""


def _read(path: str, most: int) -> Optional[str]:
    try:
        with open(path, "rb") as file:
            data = file.read(most + 1)
    except OSError:
        return None
    return data.decode("utf-8", "replace") if len(data) <= most else None


def _markers() -> Dict[str, str]:
    """Return what the conditions of requirements are compared with. Source: PEP 508, "Environment Markers"."""
    info = sys.implementation.version
    kind = {"final": ""}.get(info.releaselevel, info.releaselevel[0] + str(info.serial))
    return {
        "implementation_name": sys.implementation.name,
        "implementation_version": "%d.%d.%d%s" % (info.major, info.minor, info.micro, kind),
        "os_name": os.name,
        "platform_machine": platform.machine(),
        "platform_python_implementation": platform.python_implementation(),
        "platform_release": platform.release(),
        "platform_system": platform.system(),
        "platform_version": platform.version(),
        "python_full_version": platform.python_version(),
        "python_version": ".".join(platform.python_version_tuple()[:2]),
        "sys_platform": sys.platform,
    }
