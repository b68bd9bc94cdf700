"""Situations that a fix must survive: odd paths, settings that contradict it, two at once, files put in its way."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from gpudoctor.fixing.actions import Action
from gpudoctor.fixing.environment import read_inventory
from gpudoctor.fixing.installers import Pip, Uv
from gpudoctor.fixing.programs import Refused
from gpudoctor.fixing.record import MANIFEST
from tests.fixing.beds import UV, Bed, Env
from tests.fixing.test_plan import distribution, inventory
from tests.wheels import make_wheel

CPU = ("torch==2.13.0+cpu", "tiny")
CUDA = "2.13.0+cu130"
ACTION = Action(requirements=(f"torch=={CUDA}",))
WITH_UV = pytest.mark.skipif(UV is None, reason="uv is not installed")


def fix_and_undo(env: Env, **variables: str) -> None:
    """Fix PyTorch's build, and undo it. The environment is as before."""
    before = env.state()
    done = env.fix("--yes", **variables)
    assert (done["status"], done["why"], env.versions()["torch"]) == ("fixed", "", CUDA)
    assert env.fix("--undo", **variables)["status"] == "undone"
    assert env.state() == before


def test_a_path_that_a_shell_would_take_apart(bed: Bed) -> None:
    env = bed.environment(*CPU, name='it\'s a "venv"; $HOME `id`')
    script = env.gpudoctor("fix", "--script").stdout
    (command,) = (line for line in script.splitlines() if " -m pip install " in line)
    assert shlex.split(command)[0] == env.python
    subprocess.run(["sh", "-n"], input=script, text=True, check=True)
    fix_and_undo(env)


def test_an_environment_behind_a_link(bed: Bed) -> None:
    env = bed.environment(*CPU)
    (bed.folder / "link").symlink_to(env.path)
    fix_and_undo(replace(env, path=bed.folder / "link"))


def test_editable_installs_and_files_of_the_user_stay(bed: Bed) -> None:
    env = bed.environment(*CPU)
    info = env.packages / "mine-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    (info / "direct_url.json").write_text('{"url": "file:///srv/mine", "dir_info": {"editable": true}}')
    (info / "RECORD").write_text("mine.pth,,\n")
    (env.packages / "mine.pth").write_text(f"{bed.folder}\n")
    (env.packages / "torch" / "notes of mine.txt").write_text("mine")
    (env.path / "bin" / "my-script").write_text("#!/bin/sh\n")
    fix_and_undo(env)


def test_a_module_in_the_working_directory_is_not_taken_for_pip(bed: Bed) -> None:
    env = bed.environment(*CPU)
    for name in ("pip.py", "json.py", "packaging.py", "sitecustomize.py"):
        (bed.folder / name).write_text(f"open({str(bed.folder / 'was-run')!r}, 'w')\n")
    fix_and_undo(env)
    assert not (bed.folder / "was-run").exists()


def test_settings_that_would_install_elsewhere(bed: Bed) -> None:
    elsewhere = str(bed.folder / "elsewhere")
    fix_and_undo(bed.environment(*CPU), PIP_TARGET=elsewhere, PIP_USER="1", PIP_NO_DEPS="1", PIP_DRY_RUN="1")
    assert not Path(elsewhere).exists()


@pytest.mark.parametrize("installer", ["pip", pytest.param("uv", marks=WITH_UV)])
def test_a_constraint_that_forbids_the_fix(bed: Bed, installer: str) -> None:
    env = bed.environment(*CPU, installer=installer)
    constraints = bed.folder / "constraints.txt"
    constraints.write_text("torch==2.13.0+cpu\n")
    before = env.state()
    done = env.gpudoctor("fix", "--yes", PIP_CONSTRAINT=str(constraints), UV_CONSTRAINT=str(constraints))
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
    assert f"{installer} finds no versions that go together" in done.stderr
    assert env.state() == before


def test_two_at_once_are_one_after_the_other(bed: Bed) -> None:
    env = bed.environment(*CPU)
    before = env.state()
    command = [sys.executable, "-m", "gpudoctor", "fix", "--yes", "--fast", "--python", env.python]
    both = [
        subprocess.Popen(
            command, env=dict(bed.variables), cwd=bed.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        for _ in range(2)
    ]
    said = [process.communicate() for process in both]
    assert sorted(process.returncode for process in both) in ([0, 0], [0, 2]), said
    assert env.versions()["torch"] == CUDA
    assert env.fix("--undo")["status"] == "undone"
    assert env.state() == before


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
def test_a_process_that_uses_pytorch(bed: Bed) -> None:
    env = bed.environment(*CPU)
    before = env.state()
    library = next((env.packages / "torch" / "lib").iterdir())
    code = "import mmap, sys; f = open(sys.argv[1]); m = mmap.mmap(f.fileno(), 0, prot=1); print(flush=True); input()"
    command = [sys.executable, "-c", code, str(library)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        done = env.fix("--yes")
        process.communicate(b"\n")
    assert (done["status"], done["exit"]) == ("refused", 2)
    assert f"(process {process.pid}) uses the packages of" in done["why"]
    assert "Fetching" not in done["said"]
    assert env.state() == before


def test_a_wheel_that_leads_out_of_the_environment(bed: Bed) -> None:
    env = bed.environment(*CPU)
    before = env.state()
    files: dict[str, str | bytes] = {"torch/__init__.py": "", "../../../../../escaped.py": "escaped = True\n"}
    make_wheel(bed.index, "torch", CUDA, files, ["tiny"])
    done = env.fix("--yes")
    assert (done["status"], done["exit"]) in (("undone", 1), ("refused", 2))
    assert env.state() == before
    assert not [*bed.folder.parent.rglob("escaped.py")]


@pytest.mark.parametrize(
    ("folder", "arguments", "status", "message"),
    [
        ("record", ("fix", "--undo"), 2, "there is nothing to undo"),
        ("pending", ("fix", "--yes"), 3, "is not a record of this environment: remove it"),
    ],
)
def test_a_damaged_record(bed: Bed, folder: str, arguments: tuple[str, ...], status: int, message: str) -> None:
    env = bed.environment(*CPU)
    place = env.path / ".gpudoctor" / folder
    place.mkdir(parents=True)
    place.parent.chmod(0o700)
    (place / MANIFEST).write_text('{"schema": "gpudoctor/fix-record/1", "ro')
    before = env.state()
    done = env.gpudoctor(*arguments)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (status, "", 1)
    assert message in done.stderr
    assert env.state() == before


@pytest.mark.parametrize(
    ("versions", "message"),
    [((), "the environment has no pip: .* -m ensurepip"), (("22.3",), r"pip 22\.3 is too old to show a plan: update")],
)
def test_a_pip_that_shows_no_plan(versions: tuple[str, ...], message: str) -> None:
    known = inventory(*(distribution("pip", version) for version in versions))
    with pytest.raises(Refused, match=message):
        Pip(known, {}).resolve([ACTION])


@pytest.mark.skipif(os.name != "posix", reason="a script takes uv's place")
def test_a_uv_that_shows_no_plan(bed: Bed) -> None:
    known = read_inventory(bed.environment().python)
    program = bed.folder / "uv"
    with pytest.raises(Refused, match="uv manages this environment and is not on PATH"):
        Uv(known, {"PATH": str(bed.folder)}).resolve([ACTION])
    program.write_text("#!/bin/sh\necho 'Would install 1 package'\n")
    program.chmod(0o755)
    with pytest.raises(Refused, match="this version of uv does not show its plan as JSON: update uv"):
        Uv(known, {"PATH": str(bed.folder)}).resolve([ACTION])


def test_a_python_that_prints_when_it_starts_and_a_home_that_cannot_be_written(bed: Bed) -> None:
    env = bed.environment(*CPU)
    (env.packages / "sitecustomize.py").write_text("print('hello')\n")
    (bed.folder / "file").write_text("")
    fix_and_undo(env, XDG_STATE_HOME=str(bed.folder / "file" / "state"))


def test_a_script_with_nothing_to_do_is_still_a_script(bed: Bed) -> None:
    env = bed.environment("torch==2.13.0+cu130", "torchvision==0.28.0+cu130", "tiny")
    done = env.gpudoctor("fix", "--script")
    assert (done.returncode, done.stdout[:16]) == (0, "# Nothing to do:")
    assert subprocess.run(["sh"], input=done.stdout, text=True, check=False).returncode == 0
