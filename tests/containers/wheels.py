"""Tiny wheels, which pip installs without a network."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path


def write_wheel(
    folder: Path, name: str, version: str, *, files: Mapping[str, str] | None = None, metadata: Sequence[str] = ()
) -> Path:
    """Write a wheel of pure Python into `folder` and return its path.

    files: by their path below site-packages; without any, a package of the wheel's name.
    metadata: further lines of METADATA, such as "Requires-Dist: numpy".
    """
    info = f"{name}-{version}.dist-info"
    head = ("Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}", *metadata)
    contents = {
        **(files if files is not None else {f"{name}/__init__.py": f"__version__ = {version!r}\n"}),
        f"{info}/METADATA": "\n".join(head) + "\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{path},,\n" for path in (*contents, f"{info}/RECORD"))
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for inside, text in {**contents, f"{info}/RECORD": record}.items():
            archive.writestr(inside, text)
    return path
