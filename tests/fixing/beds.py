"""A machine for `gpudoctor fix`: a GPU that is a stand-in, an index of tiny wheels, and real environments."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.wheels import make_index

ROOT = Path(__file__).parent.parent.parent
UV = shutil.which("uv")


@dataclass(frozen=True)
class Bed:
    """The folders of a test, and the environment variables of the machine."""

    folder: Path
    index: Path
    variables: Mapping[str, str]
    pip: Path

    def environment(self, *packages: str, installer: str = "pip", name: str = "venv") -> Env:
        """Make a virtual environment with these packages, without whatever they need."""
        path = self.folder / name
        if installer == "uv":
            self.run("uv", "venv", "--quiet", "--python", sys.executable, str(path))
            made = Env(self, path)
            if packages:
                self.run("uv", "pip", "install", "--quiet", "--no-deps", "--python", made.python, *packages)
            return made
        self.run(sys.executable, "-m", "venv", "--without-pip", str(path))
        made = Env(self, path)
        for part in self.pip.iterdir():
            shutil.copytree(part, made.packages / part.name)
        if packages:
            self.run(made.python, "-m", "pip", "install", "--quiet", "--no-deps", "--no-compile", *packages)
        return made

    def run(self, *command: str) -> None:
        """Run a command on this machine. It succeeds."""
        done = subprocess.run(command, env=dict(self.variables), capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


@dataclass(frozen=True)
class Env:
    """A virtual environment."""

    bed: Bed
    path: Path

    @property
    def python(self) -> str:
        return str(self.path / "bin" / "python")

    @property
    def packages(self) -> Path:
        """Its folder site-packages."""
        return next((self.path / "lib").glob("python*/site-packages"))

    def gpudoctor(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run gpudoctor on this environment."""
        command = [sys.executable, "-m", "gpudoctor", *arguments, "--python", self.python, "--fast"]
        return subprocess.run(
            command,
            env={**self.bed.variables, **variables},
            cwd=self.bed.folder,
            capture_output=True,
            text=True,
            check=False,
        )

    def fix(self, *arguments: str, **variables: str) -> dict[str, Any]:
        """Return what `gpudoctor fix` says as JSON, with its exit status as `exit`."""
        done = self.gpudoctor("fix", *arguments, "--format", "json", **variables)
        assert done.stdout, done.stderr
        return {**json.loads(done.stdout), "exit": done.returncode, "said": done.stderr}

    def versions(self) -> dict[str, str]:
        """Return the installed distributions."""
        names = (path.name.removesuffix(".dist-info").rpartition("-") for path in self.packages.glob("*.dist-info"))
        return {name.replace("_", "-"): version for name, _, version in names}

    def state(self) -> dict[str, str]:
        """Return everything in the environment with its mode and content, without what Python compiles by itself."""
        found = {}
        for path in sorted(self.path.rglob("*")):
            inside = path.relative_to(self.path)
            if inside.parts[0] == ".gpudoctor" or "__pycache__" in inside.parts:
                continue
            is_folder = path.is_dir() and not path.is_symlink()
            data = b"" if is_folder or path.is_symlink() else path.read_bytes()
            content = os.readlink(path) if path.is_symlink() else hashlib.sha256(data).hexdigest()
            found[str(inside)] = f"{path.lstat().st_mode:o} {content}"
        return found


def unpack_pip(folder: Path) -> Path:
    """Return a folder with the pip that Python brings: to unpack and compile it for each environment takes seconds."""
    import compileall
    import ensurepip

    bundled = next(Path(ensurepip.__file__).parent.glob("_bundled/pip-*.whl"), None)
    if bundled is None:
        pytest.skip("this Python brings no pip")
    with zipfile.ZipFile(bundled) as archive:
        archive.extractall(folder)
    compileall.compile_dir(folder, quiet=2)
    return folder


def make_bed(folder: Path, gpu: Mapping[str, str], pip: Path) -> Bed:
    """Return a bed with its own index. gpu: the variables by which the stand-ins for the driver are found."""
    index = make_index(folder / "index")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "UV_", "VIRTUAL_ENV"))}
    variables = {
        **kept,
        **gpu,
        "PYTHONPATH": str(ROOT),
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(index),
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "UV_NO_CONFIG": "1",
        "UV_OFFLINE": "1",
        "UV_FIND_LINKS": str(index),
        "UV_CACHE_DIR": str(folder / "uv-cache"),
        "XDG_STATE_HOME": str(folder / "state"),
        "HOME": str(folder / "home"),
    }
    return Bed(folder, index, variables, pip)
