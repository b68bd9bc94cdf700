"""From a frame to the line of the user's code that led there."""

from __future__ import annotations

import os
import site
import sys
import sysconfig
from contextlib import suppress
from types import FrameType
from typing import Any

MOST_FRAMES = 60
INSTALLED = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
NOT_FORWARD = (("autograd", "__init__.py"), ("autograd", "graph.py"), ("amp", "grad_scaler.py"), ("optim", ""))
"""Files and folders of torch whose computations are not part of the forward pass."""

_FOLDERS = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
_FOLDERS |= {os.path.dirname(os.path.abspath(__file__)), site.getusersitepackages()}


def cells_of(files: set[str]) -> dict[str, int]:
    """Return the notebook cell number of each file that IPython made for a cell: 3 for "In [3]"."""
    with suppress(Exception):
        known = sys.modules["IPython"].get_ipython().compile._filename_map
        return {file: known[file] for file in files if file in known}
    return {}


class Places:
    """Which lines are the user's. torch_folder: where torch is, also if it is no installed package."""

    def __init__(self, torch_folder: str) -> None:
        self.torch_folder = torch_folder
        self._folders = tuple(f"{folder}{os.sep}" for folder in {*_FOLDERS, torch_folder} if folder)
        self._not_forward = tuple(os.path.join(torch_folder, *parts) for parts in NOT_FORWARD)
        self._known: dict[str, bool] = {}
        self._start = os.getcwd()

    def is_library(self, file: str) -> bool:
        """Return whether a file is of the standard library, of an installed package, of torch, or of this hook."""
        known = self._known.get(file)
        if known is None:
            installed = any(folder in file for folder in INSTALLED)
            known = installed or file.startswith(("<frozen", "<__array", *self._folders))
            self._known[file] = known
        return known

    def package_of(self, frame: FrameType | None) -> str:
        """Return the installed package that a frame is in: "transformers"; empty for none."""
        file = "" if frame is None else frame.f_code.co_filename
        if not file or not self.is_library(file):
            return ""
        for folder in INSTALLED:
            _, found, inside = file.rpartition(folder)
            if found:
                return inside.partition(os.sep)[0]
        return ""

    def of(self, frame: FrameType | None) -> tuple[str, int]:
        """Return file and line of the innermost frame of the user's code; ("", 0) if there is none near."""
        for _ in range(MOST_FRAMES):
            if frame is None:
                break
            file = frame.f_code.co_filename
            if not self.is_library(file):
                return (file if file.startswith("<") else os.path.join(self._start, file)), frame.f_lineno
            frame = frame.f_back
        return "", 0

    def of_stack(self, stack: Any) -> tuple[str, int]:
        """Return the same for a stack as torch's profiler writes it, innermost first; ("", 0) below a backward pass."""
        for entry in stack:
            file, _, rest = entry.rpartition("(")
            line = rest.partition(")")[0]
            if file.startswith(self._not_forward) or not line.isdigit():
                break
            if not self.is_library(file):
                return (file if file.startswith("<") else os.path.join(self._start, file)), int(line)
        return "", 0
