"""A package that is installed more than once, as an interrupted installation leaves it, is there once afterwards."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from gpudoctor.fixing.actions import Action
from gpudoctor.fixing.environment import read_inventory
from gpudoctor.fixing.installers import Pip
from tests.fixing.beds import UV, Bed, Env

CPU = ("torch==2.13.0+cpu", "tiny")
INSTALLERS = ["pip", pytest.param("uv", marks=pytest.mark.skipif(UV is None, reason="uv is not installed"))]


def add_twin(env: Env, version: str) -> Path:
    """Add the metadata of another version of PyTorch, whose files are those of the first."""
    info = env.packages / f"torch-{version}.dist-info"
    shutil.copytree(env.packages / "torch-2.13.0+cpu.dist-info", info)
    for path in (info / "METADATA", info / "RECORD"):
        path.write_text(path.read_text().replace("2.13.0+cpu", version))
    return info


@pytest.mark.parametrize("installer", INSTALLERS)
@pytest.mark.parametrize(
    ("finding", "build", "left"), [("torch-cpu-build", "cu130", ()), ("package-twins", "cpu", ("torch-cpu-build",))]
)
def test_one_is_left_and_the_undo_restores_all(
    bed: Bed, installer: str, finding: str, build: str, left: tuple[str, ...]
) -> None:
    env = bed.environment(*CPU, installer=installer)
    add_twin(env, "2.12.0")
    add_twin(env, "2.9.0")
    before = env.state()
    done = env.fix(finding, "--yes")
    assert (done["status"], done["why"], done["after"]) == ("fixed", "", [*left])
    (change,) = done["plan"][0]["changes"]
    assert (change["from"], change["to"]) == ("2.12.0 and 2.13.0+cpu and 2.9.0", f"2.13.0+{build}")
    assert [path.name for path in env.packages.glob("torch-*")] == [f"torch-2.13.0+{build}.dist-info"]
    assert env.fix("--undo")["status"] == "undone"
    assert env.state() == before


@pytest.mark.parametrize("installer", INSTALLERS)
def test_a_script_of_pip_would_leave_one(bed: Bed, installer: str) -> None:
    env = bed.environment(*CPU, installer=installer)
    add_twin(env, "2.12.0")
    done = env.gpudoctor("fix", "--script")
    if installer == "pip":
        why = "the commands of a script would leave one of them: leave out --script"
        assert done.stderr == f"gpudoctor: torch is installed twice (2.12.0 and 2.13.0+cpu), and {why}\n"
        assert (done.returncode, done.stdout) == (2, "")
    else:
        subprocess.run(["sh"], input=done.stdout, text=True, env=dict(bed.variables), check=False, capture_output=True)
        assert [path.name for path in env.packages.glob("torch-*")] == ["torch-2.13.0+cu130.dist-info"]


def test_a_fix_of_something_else_leaves_them(bed: Bed) -> None:
    env = bed.environment(*CPU, "numpy==2.4.6")
    add_twin(env, "2.12.0")
    done = env.gpudoctor("install", "cupy", "--yes")
    assert done.returncode == 0, done.stderr
    assert "Still found: torch-cpu-build, package-twins. To go on" in done.stdout
    assert len([*env.packages.glob("torch-*")]) == 2


def test_a_version_that_one_of_them_has_is_planned(bed: Bed) -> None:
    env = bed.environment(*CPU)
    add_twin(env, "2.12.0")
    plan = Pip(read_inventory(env.python), bed.variables).resolve(
        [Action(requirements=("torch==2.13.0+cpu",), forced=True)]
    )
    assert ([*map(str, plan.pins)], plan.removes) == (["torch==2.13.0+cpu"], ("torch",))


def test_one_without_a_list_of_its_files_is_named(bed: Bed) -> None:
    env = bed.environment(*CPU)
    info = add_twin(env, "2.12.0")
    (info / "RECORD").unlink()
    done = env.gpudoctor("fix", "--yes")
    assert done.returncode == 2
    assert done.stderr.endswith(
        f"torch is installed twice (2.12.0 and 2.13.0+cpu), and {info} has no list of its files (RECORD): remove that"
        " folder, then run gpudoctor fix again\n"
    )
    shutil.rmtree(info)
    assert env.fix("--yes")["status"] == "fixed"
