"""Tiny wheels with the real names, versions and metadata, and a folder of them that pip and uv take for an index."""

from __future__ import annotations

import base64
import hashlib
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.site_packages import SitePackages

SHARED = {f"cupy/module_{number}.py": f"number = {number}\n" for number in range(20)}
"""The files that each CuPy distribution installs."""


def make_wheel(
    folder: Path,
    name: str,
    version: str,
    files: Mapping[str, str | bytes],
    requires: Sequence[str] = (),
    *,
    compressed: bool = False,
) -> Path:
    """Write a wheel into `folder` and return its path."""
    stem = f"{name.replace('-', '_')}-{version}"
    info = f"{stem}.dist-info"
    headers = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
    headers += [f"Requires-Dist: {requirement}" for requirement in requires if "extra ==" not in requirement]
    extras = [requirement for requirement in requires if "extra ==" in requirement]
    headers += [*(["Provides-Extra: ctk"] if extras else []), *(f"Requires-Dist: {extra}" for extra in extras)]
    content = {path: data.encode() if isinstance(data, str) else data for path, data in files.items()}
    content[f"{info}/METADATA"] = ("\n".join(headers) + "\n").encode()
    content[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: false\nTag: py3-none-any\n"
    record = "".join(f"{path},sha256={_digest(data)},{len(data)}\n" for path, data in content.items())
    content[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    path = folder / f"{stem}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED) as archive:
        for inner, data in content.items():
            archive.writestr(inner, data)
    return path


def make_index(folder: Path) -> Path:
    """Write the wheels of a whole index into `folder` and return it."""
    folder.mkdir(parents=True, exist_ok=True)
    for version in ("2.13.0+cpu", "2.13.0+cu130", "2.12.0+cu126", "2.14.1+cu130"):
        make_torch(folder, version, {"cpu": None, "cu126": "12.6", "cu130": "13.0"}[version.partition("+")[2]])
    for variant in ("cpu", "cu130"):
        for name, version, count in (("torchvision", f"0.28.0+{variant}", 3), ("torchaudio", f"2.11.0+{variant}", 2)):
            content: dict[str, str | bytes] = {
                f"{name}/__init__.py": "",
                f"{name}/version.py": f"__version__ = {version!r}\n",
            }
            content |= {f"{name}/part_{number}.py": variant for number in range(count)}
            make_wheel(folder, name, version, content, ["torch==2.13.0"] if name == "torchvision" else [])
    for major in (12, 13):
        inside: dict[str, str | bytes] = {"cupy/__init__.py": f"__version__ = '14.2.0'\nmajor = {major}\n", **SHARED}
        inside |= {f"cupy/only_{major}.py": "", "cupy/_version.py": "__version__ = '14.2.0'\n"}
        requires = ["numpy>=2.0", "cuda-pathfinder==1.4; extra == 'ctk'"]
        make_wheel(folder, f"cupy-cuda{major}x", "14.2.0", inside, requires)
    make_wheel(folder, "cuda-pathfinder", "1.4", {"cuda_pathfinder/__init__.py": ""})
    for version in ("1.26.4", "2.4.6"):
        make_wheel(folder, "numpy", version, {"numpy/__init__.py": f"__version__ = {version!r}\n"})
    make_wheel(folder, "flash-attn", "2.8.1", {"flash_attn/__init__.py": ""}, ["torch<2.13"])
    make_wheel(folder, "flash-attn", "2.9.0", {"flash_attn/__init__.py": ""}, ["torch>=2.12"])
    for name, version in (("pynvml", "11.5.3"), ("nvidia-ml-py", "13.580.82")):
        make_wheel(folder, name, version, {"pynvml.py": f"name = {name!r}\n"})
    make_wheel(folder, "tiny", "1.0", {"tiny/__init__.py": "", "tiny-1.0.data/data/share/man/tiny.1": "a page"})
    return folder


def make_torch(folder: Path, version: str, cuda: str | None) -> Path:
    """Write a wheel of PyTorch with binaries that name each other as those of the real one do."""
    place = SitePackages(folder.parent / f"unpacked-{version}")
    place.torch(version, cuda=cuda, flags="sm_75 sm_80 sm_86 sm_90 sm_100 sm_120" if cuda else "")
    files = {
        str(path.relative_to(place.folder)): path.read_bytes() for path in place.folder.rglob("*") if path.is_file()
    }
    return make_wheel(folder, "torch", version, {**files, "torch/__init__.py": ""}, ["tiny"])


def _digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
