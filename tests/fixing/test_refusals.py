"""Environments that gpudoctor does not change: each refusal says why, and the right way."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpudoctor.fixing.environment import Distribution, Inventory
from gpudoctor.fixing.programs import Refused
from gpudoctor.fixing.refusals import refuse_environment, refuse_if_full, refuse_if_used, refuse_unrecordable
from tests.fixing.beds import Bed

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")


def inventory(folder: Path, **changes: Any) -> Inventory:
    packages = folder / "lib"
    packages.mkdir(parents=True, exist_ok=True)
    known = Inventory(
        executable=str(folder / "bin" / "python"),
        prefix=str(folder),
        is_virtual=True,
        externally_managed=False,
        conda=False,
        conda_base=False,
        folders=(str(packages),),
        scripts=str(folder / "bin"),
        markers={},
        distributions=(),
    )
    return replace(known, **changes)


def distribution(folder: Path, **changes: Any) -> Distribution:
    known = Distribution(
        name="torch",
        version="2.13.0+cpu",
        requires=(),
        info=str(folder / "lib" / "torch-2.13.0+cpu.dist-info"),
        files=("torch/__init__.py",),
        installer="pip",
        direct_url="",
        own=True,
    )
    return replace(known, **changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        pytest.param(
            {"is_virtual": False, "externally_managed": True}, "(PEP 668): create an environment", id="PEP 668"
        ),
        pytest.param({"is_virtual": False, "prefix": "/usr"}, "is the system's own Python", id="system"),
        pytest.param({"conda": True, "conda_base": True}, "conda's base environment: create one with conda", id="base"),
    ],
)
def test_an_environment_of_something_else(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(Refused) as refused:
        refuse_environment(inventory(tmp_path, **changes))
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_own_environments_are_taken(tmp_path: Path) -> None:
    refuse_environment(inventory(tmp_path))
    refuse_environment(inventory(tmp_path, conda=True))
    refuse_environment(inventory(tmp_path, is_virtual=False))  # of pyenv, or of an image


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give a folder away")
def test_an_environment_of_another_user(tmp_path: Path) -> None:
    os.chown(tmp_path, 12345, 12345)
    with pytest.raises(Refused, match="belongs to the user with the number 12345: run gpudoctor fix as that user"):
        refuse_environment(inventory(tmp_path))


@pytest.mark.parametrize(
    ("file", "message"),
    [
        pytest.param("uv-receipt.toml", "is a tool of uv", id="uv tool"),
        pytest.param("pipx_metadata.json", "is an application of pipx", id="pipx"),
    ],
)
def test_an_environment_of_a_tool(tmp_path: Path, file: str, message: str) -> None:
    (tmp_path / file).touch()
    with pytest.raises(Refused, match=message):
        refuse_environment(inventory(tmp_path))


@pytest.mark.parametrize("lock", ["uv.lock", "poetry.lock", "pdm.lock", "pixi.lock"])
def test_a_lock_file_decides(tmp_path: Path, lock: str) -> None:
    (tmp_path / lock).touch()
    tool = lock.partition(".")[0]
    with pytest.raises(Refused, match=f"change the lock instead, with {tool} add"):
        refuse_environment(inventory(tmp_path / ".venv"))
    with pytest.raises(Refused, match=f"with {tool} add torch==2.13.0"):
        refuse_environment(inventory(tmp_path / ".venv"), [f"{tool} add torch==2.13.0"])
    with pytest.raises(Refused, match=rf"with {tool} add (?:--pypi )?torch==2\.13\.0\+cu130$"):
        refuse_environment(inventory(tmp_path / ".venv"), ["python -m pip install --upgrade 'torch==2.13.0+cu130'"])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        pytest.param({"installer": "conda"}, "conda installed torch", id="conda"),
        pytest.param({"files": None}, "has no list of its files", id="no RECORD"),
    ],
)
def test_a_distribution_that_cannot_be_restored(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(Refused, match=message):
        refuse_unrecordable(inventory(tmp_path, distributions=(distribution(tmp_path, **changes),)), {"torch"})


def test_a_package_that_is_a_link(tmp_path: Path) -> None:
    known = inventory(tmp_path, distributions=(distribution(tmp_path),))
    refuse_unrecordable(known, {"torch"})
    (tmp_path / "lib" / "torch").symlink_to(tmp_path)
    with pytest.raises(Refused, match="is a link"):
        refuse_unrecordable(known, {"torch"})


@LINUX
def test_a_process_that_has_the_package_loaded(tmp_path: Path) -> None:
    library = tmp_path / "lib" / "torch" / "libtorch.so"
    library.parent.mkdir(parents=True)
    library.write_bytes(b"x" * 4096)
    code = "import mmap, sys; f = open(sys.argv[1]); m = mmap.mmap(f.fileno(), 0, prot=1); print(flush=True); input()"
    command = [sys.executable, "-c", code, str(library)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        with pytest.raises(Refused, match=rf"process {process.pid}\) uses the packages"):
            refuse_if_used(inventory(tmp_path), [str(library.parent)])
        library.unlink()  # the process keeps it
        with pytest.raises(Refused, match=rf"process {process.pid}"):
            refuse_if_used(inventory(tmp_path), [str(library.parent)])
        refuse_if_used(inventory(tmp_path), [str(tmp_path / "lib" / "torchvision")])
        process.communicate(b"\n")
    refuse_if_used(inventory(tmp_path), [str(library.parent)])


def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    free = shutil.disk_usage(tmp_path)._replace(free=1100)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: free)
    refuse_if_full(str(tmp_path), 1000)
    with pytest.raises(Refused, match="make room"):
        refuse_if_full(str(tmp_path), 1001)


def test_an_index_that_cannot_be_reached(bed: Bed) -> None:
    env = bed.environment("torch==2.13.0+cu130", "tiny")
    before = env.state()
    offline = {"PIP_NO_INDEX": "", "PIP_FIND_LINKS": "", "PIP_INDEX_URL": "http://127.0.0.1:1/simple"}
    done = env.gpudoctor("install", "numpy", "--dry-run", **offline)
    assert (done.returncode, done.stdout) == (2, "")
    assert "the index http://127.0.0.1:1/simple cannot be reached" in done.stderr
    assert env.state() == before


def test_packages_outside_the_environment(tmp_path: Path) -> None:
    """A link to another disk, for space: what is there is not recorded, so that a fix could not be undone."""
    known = inventory(tmp_path / "env")
    (tmp_path / "disk").mkdir()
    (tmp_path / "env" / "lib64").symlink_to(tmp_path / "env" / "lib")
    refuse_environment(replace(known, folders=(*known.folders, str(tmp_path / "env" / "lib64"))))
    (tmp_path / "env" / "lib").rmdir()
    (tmp_path / "env" / "lib").symlink_to(tmp_path / "disk")
    with pytest.raises(Refused, match=rf"are outside it, in {tmp_path}/disk, and a fix of them could not be undone"):
        refuse_environment(known)
