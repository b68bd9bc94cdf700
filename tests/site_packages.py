"""Fabricated environments: a folder site-packages with the metadata and binaries that a test asks for."""

from __future__ import annotations

import struct
import sys
from collections.abc import Sequence
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any

import pytest

from gpudoctor.probes.workers import python_environment

CUDA_VERSION_FILE = """\
from typing import Optional

__all__ = ['__version__', 'debug', 'cuda', 'git_version', 'hip', 'rocm', 'xpu']
__version__ = '{version}'
debug = False
cuda: Optional[str] = {cuda}
git_version = '5c4886908584029761b579af026dcfb627c84070'
hip: Optional[str] = {hip}
rocm: Optional[str] = None
xpu: Optional[str] = {xpu}
"""
EXTENSION = "_C" + EXTENSION_SUFFIXES[0]
CXX11_SYMBOL = "_ZN3c105ErrorC2ENS_14SourceLocationENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
OLD_ABI_SYMBOL = "_ZN3c105ErrorC2ENS_14SourceLocationESs"


class SitePackages:
    """A folder of installed distributions under `root`/lib, which is the environment's prefix."""

    def __init__(self, root: Path, name: str = "site-packages") -> None:
        self.prefix = root
        self.folder = root / "lib" / name
        self.folder.mkdir(parents=True)

    def write(self, path: str, content: str | bytes = "") -> Path:
        """Write a file of the folder and return its path."""
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)
        return file

    def distribution(
        self, name: str, version: str, *, installer: str = "pip", requires: Sequence[str] = (), form: str = "dist-info"
    ) -> Path:
        """Install the metadata of a distribution as pip does, or in the older form "egg-info". Return its folder."""
        folder = f"{name.replace('-', '_')}-{version}.{form}"
        lines = ["Metadata-Version: 2.4", f"Name: {name}", f"Version: {version}", "Summary: made for a test"]
        lines += [f"Requires-Dist: {requirement}" for requirement in requires]
        text = "\n".join([*lines, "", "Name: not-a-header", "Version: 0"])
        self.write(f"{folder}/{'METADATA' if form == 'dist-info' else 'PKG-INFO'}", text)
        if installer:
            self.write(f"{folder}/INSTALLER", installer + "\n")
        return self.folder / folder

    def torch(
        self, version: str, *, cuda: str | None = None, hip: str | None = None, xpu: str | None = None, flags: str = ""
    ) -> Path:
        """Install the package torch, whole, with binaries that name each other as those of a wheel do.

        No machine that runs the tests has CUDA libraries of the version 99.
        """
        text = CUDA_VERSION_FILE.format(version=version, cuda=repr(cuda), hip=repr(hip), xpu=repr(xpu))
        self.write("torch/__init__.py", "raise RuntimeError('nobody imports this')\n")
        self.write("torch/version.py", text)
        self.write(f"torch/{EXTENSION}", elf(needed=["libtorch_python.so", "libc.so.6"], search="$ORIGIN/lib"))
        further = ["libtorch_cuda.so"] if cuda else []
        constants = b"\x01\x02prefix sm_99 in a text\0" + flags.encode() + b"\0compute_%d\0"
        self.library("libtorch_python.so", needed=["libtorch_cpu.so", "libc10.so", *further], constants=constants)
        self.library("libtorch_cpu.so", needed=["libc10.so", "libgomp.so.1"])
        self.library("libc10.so", needed=["libstdc++.so.6"], symbols=[CXX11_SYMBOL])
        if hip:
            self.library("libtorch_hip.so", needed=["libc10.so"])
        if cuda:
            wheels = "$ORIGIN/../../nvidia/cudnn/lib:$ORIGIN/../../nvidia/cu13/lib"
            self.library(
                "libtorch_cuda.so", needed=["libcudart.so.99", "libcudnn.so.99", "libcuda.so.1"], search=wheels
            )
            self.write("nvidia/cudnn/lib/libcudnn.so.99", elf())
            self.write("nvidia/cu13/lib/libcudart.so.99", elf())
            self.write("nvidia/cu13/lib/libnvrtc.so.13", elf())
        return self.folder / "torch"

    def library(self, name: str, **content: Any) -> Path:
        """Write a shared library into torch/lib."""
        return self.write(f"torch/lib/{name}", elf(**content))

    def conda(self, *records: str) -> None:
        """Write the records of packages that conda installed."""
        folder = self.prefix / "conda-meta"
        folder.mkdir(exist_ok=True)
        for record in records:
            (folder / f"{record}.json").write_text("{}")

    def collect(
        self, monkeypatch: pytest.MonkeyPatch, *, before: Sequence[Path] = (), directory: Path | None = None
    ) -> dict[str, Any]:
        """Return what the worker finds under an interpreter of this environment, with `before` earlier on its path."""
        with monkeypatch.context() as patch:
            patch.setattr(sys, "path", [str(folder) for folder in (*before, self.folder)])
            patch.setattr(sys, "prefix", str(self.prefix))
            patch.setattr(sys, "base_prefix", str(self.prefix))
            for name in ("VIRTUAL_ENV", "CONDA_PREFIX", "LD_LIBRARY_PATH"):
                patch.delenv(name, raising=False)
            working = directory or self.prefix / "work"
            working.mkdir(exist_ok=True)
            return dict(python_environment.collect({"directory": str(working)}))


def elf(*, needed: Sequence[str] = (), search: str = "", constants: bytes = b"", symbols: Sequence[str] = ()) -> bytes:
    """Return a 64-bit ELF library with a dynamic section and a section .rodata.

    The segment is loaded 0x10000 above its place in the file, so that addresses and offsets differ.
    """
    base = 0x10000
    strings = b"\0"
    offsets = {}
    for text in (*needed, search, *symbols):
        offsets[text] = len(strings)
        strings += text.encode() + b"\0"
    strings_at = 64 + 2 * 56
    dynamic_at = strings_at + len(strings)
    tags = [(1, offsets[name]) for name in needed] + ([(29, offsets[search])] if search else [])
    tags += [(5, base + strings_at), (10, len(strings)), (0, 0)]
    dynamic = b"".join(struct.pack("<qQ", tag, value) for tag, value in tags)
    constants_at = dynamic_at + len(dynamic)
    labels = b"\0.rodata\0.shstrtab\0"
    labels_at = constants_at + len(constants)
    sections_at = labels_at + len(labels)
    header = (
        b"\x7fELF\x02\x01\x01"
        + bytes(9)
        + struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, sections_at, 0, 64, 56, 2, 64, 3, 2)
    )
    programs = struct.pack("<IIQQQQQQ", 1, 5, 0, base, base, sections_at, sections_at, 4096)
    programs += struct.pack("<IIQQQQQQ", 2, 6, dynamic_at, base + dynamic_at, 0, len(dynamic), len(dynamic), 8)
    rows = bytes(64) + b"".join(
        struct.pack("<IIQQQQIIQQ", label, kind, 2, base + at, at, size, 0, 0, 1, 0)
        for label, kind, at, size in ((1, 1, constants_at, len(constants)), (9, 3, labels_at, len(labels)))
    )
    return header + programs + strings + dynamic + constants + labels + rows


def dll(constants: bytes) -> bytes:
    """Return a Windows DLL with a section .rdata."""
    dos = b"MZ" + bytes(58) + struct.pack("<I", 64)
    coff = b"PE\0\0" + struct.pack("<HHIIIHH", 0x8664, 2, 0, 0, 0, 112, 0x2022)
    at = 64 + 24 + 112 + 80
    rows = struct.pack("<8sIIII16x", b".text", 0, 0x1000, 0, at) + struct.pack(
        "<8sIIII16x", b".rdata", len(constants), 0x2000, len(constants), at
    )
    return dos + coff + bytes(112) + rows + constants
