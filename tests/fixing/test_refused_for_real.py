"""What `gpudoctor fix` refuses, met for real: each in one line, with the environment as before."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from gpudoctor.fixing.programs import Refused
from gpudoctor.fixing.refusals import refuse_environment
from tests.fixing.beds import UV, Bed, Env
from tests.fixing.test_refusals import inventory
from tests.wheels import make_wheel

CPU = ("torch==2.13.0+cpu", "tiny")
IS_ROOT = hasattr(os, "geteuid") and os.geteuid() == 0
AS_ROOT = pytest.mark.skipif(not IS_ROOT, reason="only root can mount, or give folders away")
NOBODY, MEGABYTE = 65534, 1 << 20
NOWHERE = "http://127.0.0.1:1"


@pytest.fixture
def disk(bed: Bed) -> Iterator[Path]:
    """Return a folder that is a file system of its own."""
    folder = bed.folder / "disk"
    folder.mkdir()
    if not IS_ROOT or subprocess.run(["mount", "-t", "tmpfs", "none", folder], check=False).returncode:
        pytest.skip("no file system can be mounted here")
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)


def leave_free(disk: Path, megabytes: int) -> None:
    state = os.statvfs(disk)
    used = (state.f_blocks - state.f_bfree) * state.f_frsize
    size = f"remount,size={used + megabytes * MEGABYTE}"
    subprocess.run(["mount", "-o", size, disk], check=True)


def refused(env: Env, **variables: str) -> str:
    """Return why `gpudoctor fix` refuses. It is one line, and nothing has changed."""
    before = env.state()
    done = env.gpudoctor("fix", "--yes", **variables)
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    *steps, line = done.stderr.splitlines()
    assert {*steps} <= {"Fetching the packages", "Recording the environment", "Applying the change"}
    assert env.state() == before
    return line


def test_a_file_system_that_is_read_only(bed: Bed, disk: Path) -> None:
    env = bed.environment(*CPU, name="disk/venv")
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
    line = refused(env)
    assert line == f"gpudoctor: {env.path} cannot be written: make it writable, or create your own environment"


@AS_ROOT
def test_a_folder_of_packages_that_is_read_only() -> None:
    with TemporaryDirectory() as name:  # that another user may enter, unlike those of pytest
        own = inventory(Path(name))
        packages = Path(name, "lib")
        for place in (name, packages):
            os.chown(place, NOBODY, NOBODY)
        packages.chmod(0o555)
        os.seteuid(NOBODY)
        try:
            with pytest.raises(Refused) as error:
                refuse_environment(own)
        finally:
            os.seteuid(0)
    assert str(error.value) == f"{packages} cannot be written: make it writable, or create your own environment"


@AS_ROOT
@pytest.mark.parametrize("place", ["prefix", "packages"])
def test_an_environment_of_another_user(bed: Bed, place: str) -> None:
    env = bed.environment(*CPU)
    given = env.path if place == "prefix" else env.packages
    os.chown(given, 12345, 12345)
    line = refused(env)
    assert line == f"gpudoctor: {given} belongs to the user with the number 12345: run gpudoctor fix as that user"


def large_torch(bed: Bed, megabytes: int, *, compressed: bool) -> None:
    """Make the new PyTorch a large one. compressed: a wheel that is small until it is unpacked."""
    content = bytes(megabytes * MEGABYTE) if compressed else os.urandom(megabytes * MEGABYTE)
    files: dict[str, str | bytes] = {"torch/__init__.py": "", "torch/lib/libtorch.so": content}
    make_wheel(bed.index, "torch", "2.13.0+cu130", files, ["tiny"], compressed=compressed)


def test_a_disk_that_is_too_small_for_the_change(bed: Bed, disk: Path) -> None:
    env = bed.environment(*CPU, name="disk/venv")
    large_torch(bed, 30, compressed=True)
    leave_free(disk, 8)
    line = refused(env)
    assert "MB free, and the change needs 34." in line
    assert line.endswith(" MB: make room")


def test_a_disk_that_is_too_small_for_compiled_modules(bed: Bed, disk: Path) -> None:
    env = bed.environment(*CPU, name="disk/venv")
    modules: dict[str, str | bytes] = {f"torch/part_{n}.py": "a = 1\n" * 100_000 for n in range(10)}
    make_wheel(bed.index, "torch", "2.13.0+cu130", {"torch/__init__.py": "", **modules}, ["tiny"], compressed=True)
    leave_free(disk, 8)
    assert "MB free, and the change needs 13." in refused(env)


def test_a_pip_whose_compiled_file_a_full_disk_has_cut_short(bed: Bed) -> None:
    env = bed.environment(*CPU)
    bed.run(env.python, "-m", "compileall", "-q", str(env.packages / "pip" / "_internal" / "cli"))
    compiled = next((env.packages / "pip" / "_internal" / "cli" / "__pycache__").glob("main.*.pyc"))
    compiled.write_bytes(compiled.read_bytes()[:60])
    way_out = f"find {env.path} -name '*.pyc' -delete"
    why = "a full disk has cut a compiled file short: make room, then run"
    assert refused(env) == f"gpudoctor: {why} {way_out}"
    subprocess.run(way_out, shell=True, check=True)
    assert env.fix("--yes")["status"] == "fixed"


def test_a_disk_that_is_full_after_half_a_download(bed: Bed, disk: Path) -> None:
    env = bed.environment(*CPU, name="disk/venv")
    large_torch(bed, 30, compressed=False)
    leave_free(disk, 8)
    assert refused(env) == "gpudoctor: the disk is full: make room, then run gpudoctor fix again"


def test_a_disk_that_fills_up_while_pip_installs(bed: Bed, disk: Path) -> None:
    env = bed.environment(*CPU, name="disk/venv")
    large_torch(bed, 30, compressed=True)
    before = env.state()
    with subprocess.Popen(
        [sys.executable, "-m", "gpudoctor", "fix", "--yes", "--fast", "--python", env.python],
        env=dict(bed.variables), cwd=bed.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stderr is not None
        for line in process.stderr:
            if line.startswith("Applying"):
                leave_free(disk, 2)
        out = process.stdout.read() if process.stdout is not None else ""
    assert process.returncode == 1
    assert out.splitlines()[-1].startswith("Undone, because the disk is full: make room")
    assert env.state() == before


@pytest.mark.parametrize(
    ("installer", "variables", "index"),
    [
        pytest.param(
            "pip",
            {"PIP_NO_INDEX": "", "PIP_FIND_LINKS": "", "HTTPS_PROXY": NOWHERE},
            "https://download.pytorch.org/whl/cu130",
            id="pip",
        ),
        pytest.param(
            "uv",
            {"UV_OFFLINE": "0", "UV_FIND_LINKS": "", "UV_DEFAULT_INDEX": NOWHERE, "UV_HTTP_RETRIES": "0"},
            f"{NOWHERE}/torch/",
            id="uv",
            marks=pytest.mark.skipif(UV is None, reason="uv is not installed"),
        ),
    ],
)
def test_no_index_can_be_reached(bed: Bed, installer: str, variables: dict[str, str], index: str) -> None:
    env = bed.environment(*CPU, installer=installer)
    line = refused(env, **variables)
    why = "cannot be reached: check the network, the proxy or the index settings"
    assert line == f"gpudoctor: the index {index} {why}"
