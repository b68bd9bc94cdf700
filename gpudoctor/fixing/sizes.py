"""How much is downloaded, as the installer says."""

import os
import re
from urllib.parse import unquote, urlsplit

_UNITS = {"bytes": 1, "kB": 1000, "MB": 1000**2, "GB": 1000**3}


def sizes_of_pip(output: str) -> dict[str, int]:
    """Return file name → bytes, as pip's output has them: "Downloading torch-2.13.0-...whl (539.0 MB)"."""
    rows = re.findall(r"(?m)^ *(?:Downloading|Using cached) (\S+\.whl) \(([\d.]+) (bytes|kB|MB|GB)\)", output)
    return {_file_name(address): int(float(number) * _UNITS[unit]) for address, number, unit in rows}


def sizes_of_uv(lock: str) -> dict[str, int]:
    """Return the normalised name → bytes of each package in a pylock.toml that names one wheel of it."""
    found: dict[str, int] = {}
    for package in lock.split("[[packages]]")[1:]:
        name = re.search(r'(?m)^name = "([^"]+)"', package)
        wheels = re.findall(r"\{([^{}]*\.whl\"[^{}]*(?:\{[^{}]*\}[^{}]*)?)\}", package)
        if name is None or len(wheels) != 1:
            continue
        said = re.search(r"\bsize = (\d+)", wheels[0])
        address = re.search(r'\b(?:url|path) = "([^"]+)"', wheels[0])
        size = int(said[1]) if said else size_of_file(address[1]) if address else None
        if size is not None:
            found[name[1]] = size
    return found


def size_of_file(address: str) -> int | None:
    """Return the bytes of a file on this machine, None for any other address."""
    parts = urlsplit(address)
    if parts.scheme not in ("", "file"):
        return None
    try:
        return os.path.getsize(unquote(parts.path))
    except OSError:
        return None


def size_of_pip(address: str, sizes: dict[str, int]) -> int | None:
    """Return the size of a wheel in pip's report, in bytes."""
    return sizes.get(_file_name(address), size_of_file(address))


def in_words(size: int) -> str:
    """Return a size as the installers write it."""
    unit = next((unit for unit in ("GB", "MB", "kB") if size >= _UNITS[unit]), "bytes")
    number = size / _UNITS[unit]
    return f"{number:.1f} {unit}" if unit != "bytes" else f"{size} bytes"


def _file_name(address: str) -> str:
    return unquote(urlsplit(address).path.rpartition("/")[2])
