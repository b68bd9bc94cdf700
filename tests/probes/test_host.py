"""What the questions to this machine depend on."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from gpudoctor.errors import UsageError
from gpudoctor.probes import host
from gpudoctor.probes.host import ImageRequest, ProbeContext, setting


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the working directory of a user without an environment."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "environ", {"HOME": "/home/ann", "COMPUTERNAME": "DESK"})
    monkeypatch.setattr(os.path, "expanduser", lambda path: path.replace("~", "/home/ann"))
    monkeypatch.setattr(os, "uname", lambda: SimpleNamespace(nodename="lab42"), raising=False)
    return tmp_path


def test_a_setting(here: Path) -> None:
    program = here / "python"
    program.touch(0o755)
    images = ImageRequest(image="app:1")
    known = ProbeContext(
        environ=dict(os.environ),
        directory=str(here),
        home="/home/ann",
        host_name="lab42",
        timeout_seconds=8.0,
    )
    assert setting(None, 8.0, fast=False) == known
    given = setting(str(program), 8.0, fast=True, images=images)
    assert (given.interpreter, given.fast, given.images) == (str(program), True, images)
    with pytest.raises(UsageError, match="--python: none is not a program"):
        setting("none", 8.0, fast=False)


@pytest.mark.parametrize(("environ", "name"), [({"COMPUTERNAME": "DESK"}, "DESK"), ({}, "")])
def test_the_name_of_a_windows_machine(
    environ: dict[str, str], name: str, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "uname")
    monkeypatch.setattr(os, "environ", environ)
    assert setting(None, 8.0, fast=False).host_name == name


def test_a_working_directory_that_is_gone(here: Path) -> None:
    gone = here / "gone"
    gone.mkdir()
    os.chdir(gone)
    gone.rmdir()
    with pytest.raises(UsageError, match="the working directory no longer exists"):
        setting(None, 8.0, fast=False)


@pytest.mark.parametrize(
    ("system", "places", "interpreter"),
    [
        ("linux", ["bin/python"], "bin/python"),
        ("linux", ["Scripts/python.exe"], None),
        ("win32", ["Scripts/python.exe", "python.exe"], "Scripts/python.exe"),
        ("win32", ["python.exe"], "python.exe"),
        ("win32", ["bin/python"], None),
        ("linux", [], None),
    ],
)
def test_the_interpreter_of_an_environment(
    system: str, places: list[str], interpreter: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", system)
    for place in places:
        (tmp_path / place).parent.mkdir(exist_ok=True)
        (tmp_path / place).touch(0o755)
    expected = None if interpreter is None else str(tmp_path / interpreter)
    assert host.interpreter_of(str(tmp_path)) == expected
    assert host.interpreter_of("") is None
