"""Projects on a Debian with Python, for images in which real commands run: pip, venv, chmod and ln.

mmdebstrap unpacks its packages (15 seconds, over the network), once: the archive stays in `.cache/debian` for later
runs. Making it needs root and mmdebstrap (Debian: `apt-get install mmdebstrap`); once it is there, neither is needed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest

from tests.containers.engine import docker, missing_engine
from tests.containers.scenarios.place import Place
from tests.containers.wheels import write_wheel

PIP = """FROM BASE
WORKDIR /app
ENV PIP_NO_INDEX=1 PIP_FIND_LINKS=/wheels PIP_BREAK_SYSTEM_PACKAGES=1 PIP_NO_COMPILE=1
COPY wheels /wheels
"""
"""How a Dockerfile begins that installs the wheels of its context."""

OLDER_APP = 'def main():\n    print("installed")\n\n\nif __name__ == "__main__":\n    main()\n'
CPU_TORCH = """from typing import Optional

__all__ = ['__version__', 'debug', 'cuda', 'git_version', 'hip', 'rocm', 'xpu']
__version__ = '2.9.0+cpu'
debug = False
cuda: Optional[str] = None
git_version = '0fabc3ba44823f257e70ce397d989c8de5e362c1'
hip: Optional[str] = None
rocm: Optional[str] = None
xpu: Optional[str] = None
"""
"""torch/version.py as the wheels of PyTorch for the CPU have it."""

CACHE = Path(__file__).resolve().parents[2] / ".cache" / "debian"
SUITE = "bookworm"
PACKAGES = "python3-venv,python3-pip,base-files,base-passwd,coreutils,dash,findutils,grep,login,passwd,sed"
SET_UP = """set -e
for name in passwd group; do cp /usr/share/base-passwd/$name.master /etc/$name; done
python3 -m compileall -q /usr/lib/python3
"""
"""What the packages themselves would do, as far as the projects need it."""

LEFT_OUT = ("usr/share/doc", "usr/share/locale")
BUILD_SECONDS = 900


@pytest.fixture(scope="session")
def debian_image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return the tag of an image with Debian, its Python and pip; it is removed at the end.

    One file in it is of this session alone: nothing that is built on it comes out of the cache of an earlier one.
    """
    reason = missing_engine() or _make_archive()
    if reason:
        pytest.skip(reason)
    tag = f"gpudoctor-test-debian-{uuid.uuid4().hex[:12]}"
    folder = tmp_path_factory.mktemp("debian")
    (folder / "session").write_text(tag)
    (folder / "Dockerfile").write_text(f"FROM {tag}-imported\nCOPY session /etc/gpudoctor-test\n")
    docker("import", str(_archive()), f"{tag}-imported")
    docker("build", "-q", "-t", tag, str(folder))
    yield tag
    docker("rmi", "-f", tag, f"{tag}-imported")


class Shelf:
    """Projects that are built once and looked at by several tests."""

    def __init__(self, folder: Path, base: str) -> None:
        self.folder = folder
        self._base = base
        self._places: dict[tuple[str, str], Place] = {}

    def place(self, builder: str, dockerfile: str, files: Mapping[str, str] | None = None) -> Place:
        """Return the project with this Dockerfile, built without a network; BASE in it is the Debian.

        files: by path, written an hour ago. The folder `wheels` has those of `write_wheels`.
        """
        key = (builder, dockerfile)
        if key not in self._places:
            root = self.folder / str(len(self._places))
            place = Place(root=root, builder=builder, base=self._base)
            self._places[key] = place
            write_wheels(root / "wheels")
            for name, content in (files or {}).items():
                place.write(name, content)
            place.dockerfile(dockerfile)
            an_hour_ago = time.time() - 3600
            for path in root.rglob("*"):
                os.utime(path, (an_hour_ago, an_hour_ago))
            if "RUN" in dockerfile:
                time.sleep(1 - time.time() % 1)  # the history dates what a later RUN changed in whole seconds
            place.build("--network", "none")
        return self._places[key]

    def remove(self) -> None:
        """Remove everything that was made."""
        for place in self._places.values():
            place.remove()


@pytest.fixture(scope="session")
def shelf_of_session(tmp_path_factory: pytest.TempPathFactory, debian_image: str) -> Iterator[Shelf]:
    """Return the projects of this session; they are removed at the end."""
    shelf = Shelf(tmp_path_factory.mktemp("shelf"), debian_image)
    yield shelf
    shelf.remove()


@pytest.fixture
def shelf(shelf_of_session: Shelf, monkeypatch: pytest.MonkeyPatch) -> Shelf:
    """Return the projects of this session. What is read of their images is kept for the tests that follow."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(shelf_of_session.folder))
    return shelf_of_session


@contextmanager
def edited(place: Place, edits: Mapping[str, str | None]) -> Iterator[None]:
    """Write files of a project, or remove those with None; at the end they are as before."""
    paths = {place.root / path: content for path, content in edits.items()}
    before = {path: (path.read_text(), path.stat()) for path in paths if path.exists()}
    for path, content in paths.items():
        if content is None:
            path.unlink()
        else:
            place.write(str(path.relative_to(place.root)), content)
    try:
        yield
    finally:
        for path in paths:
            path.unlink(missing_ok=True)
        for path, (text, about) in before.items():
            path.write_text(text)
            path.chmod(about.st_mode)
            os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))


def write_wheels(folder: Path) -> None:
    """Write the wheels that the projects install."""
    metadata = ("Provides-Extra: cuda", "Requires-Dist: cudalike>=12; extra == 'cuda'")
    write_wheel(folder, "torchlike", "2.1.0", metadata=metadata)
    write_wheel(folder, "numpylike", "1.26.0")
    write_wheel(folder, "cudalike", "12.4")
    program = {"olderapp-1.0.dist-info/entry_points.txt": "[console_scripts]\ntrain = app.main:main\n"}
    write_wheel(folder, "olderapp", "1.0", files={"app/__init__.py": "", "app/main.py": OLDER_APP, **program})
    write_wheel(folder, "torch", "2.9.0+cpu", files={"torch/__init__.py": "", "torch/version.py": CPU_TORCH})


def _archive() -> Path:
    return CACHE / f"{SUITE}.tar"


@cache
def _make_archive() -> str:
    """Make the archive unless it is there. Return why that is not possible, "" for success."""
    import fcntl

    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # test runs side by side make it once
        if _archive().is_file():
            return ""
        program = shutil.which("mmdebstrap")
        if program is None:
            return "no mmdebstrap (Debian: mmdebstrap)"
        if os.geteuid() != 0:
            return "mmdebstrap needs root"
        with tempfile.TemporaryDirectory(dir=CACHE, ignore_cleanup_errors=True) as folder:
            return _make_in(Path(folder), program)


def _make_in(folder: Path, program: str) -> str:
    """Make the archive of packages that are unpacked; to set each of them up takes five times as long."""
    root, made = folder / "root", folder / "made.tar"
    without = (f"--exclude=./{path}" for path in LEFT_OUT)
    reason = (
        _run([program, "--quiet", "--variant=extract", f"--include={PACKAGES}", SUITE, str(root)])
        or _run(["chroot", str(root), "sh", "-c", SET_UP])
        or _run(["tar", "-C", str(root), "--numeric-owner", *without, "-cf", str(made), "."])
    )
    if not reason:
        made.rename(_archive())
    return f"no Debian: {reason}" if reason else ""


def _run(command: list[str]) -> str:
    """Run the command. Return the last line that it wrote where it failed, "" for success."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=BUILD_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    lines = (done.stderr or done.stdout).strip().splitlines()
    return (lines[-1] if lines else f"exit status {done.returncode}") if done.returncode else ""
