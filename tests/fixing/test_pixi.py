"""Projects of pixi: `pixi add` changes the project and its environment, and both come back. pixi is a stand-in."""

from __future__ import annotations

import os
import sys
from dataclasses import replace

import pytest

from gpudoctor.fixing.actions import actions_of, kind_of
from gpudoctor.fixing.environment import read_inventory
from gpudoctor.fixing.installers import Pip
from gpudoctor.fixing.pixi import PixiProject
from gpudoctor.fixing.plan import make_plan, step_of
from gpudoctor.fixing.programs import Refused
from gpudoctor.fixing.resolution import Resolution
from gpudoctor.fixing.store import Store
from gpudoctor.fixing.transaction import apply
from gpudoctor.model import Remedy
from tests.fixing.beds import ROOT, Bed, Env
from tests.fixing.pixi_stand_in import SIZE

MANIFEST = """\
[workspace]
name = "demo"
[dependencies]
cuda-nvcc = "12.0=h1_3"
[pypi-dependencies]
# ours
tiny = { version = "==1.0" }
torch = { version = "==2.13.0+cpu" }  # the CPU
"""


def project(bed: Bed, text: str = MANIFEST) -> Env:
    """Return the default environment of a project of pixi."""
    program = bed.folder / "programs" / "pixi"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -m tests.fixing.pixi_stand_in "$@"\n')
    program.chmod(0o755)
    path = f"{program.parent}{os.pathsep}{bed.variables['PATH']}"
    made = replace(bed, variables={**bed.variables, "PATH": path})
    (bed.folder / "pixi.toml").write_text(text)
    env = made.environment(name=".pixi/envs/default")
    made.run("sh", "-c", f"cd '{bed.folder}' && pixi install")
    return env


def state(env: Env) -> dict[str, str]:
    return {**env.state(), **{name: (env.bed.folder / name).read_text() for name in ("pixi.toml", "pixi.lock")}}


def resolved(env: Env, *commands: str) -> tuple[PixiProject, Resolution]:
    remedy = Remedy(summary="x", commands=commands)
    assert kind_of(remedy, env.python) == "project"
    pixi = PixiProject(read_inventory(env.python), env.bed.variables)
    return pixi, pixi.resolve(actions_of(remedy, env.python))


def test_a_project_is_changed_verified_and_undone(bed: Bed) -> None:
    env = project(bed)
    before = state(env)
    planned = env.fix("--dry-run")
    assert (planned["status"], planned["why"]) == ("planned", "")
    (step,) = planned["plan"]
    assert (step["check"], step["kind"]) == ("torch-cpu-build", "project")
    assert step["commands"][0] == ("pixi add --pypi --index https://download.pytorch.org/whl/cu130 torch==2.13.0+cu130")
    expected = {"name": "torch", "from": "2.13.0+cpu", "to": "2.13.0+cu130", "download_bytes": SIZE}
    assert step["changes"] == [expected]
    assert any(line.startswith("+torch") and "2.13.0+cu130" in line for line in step["diff"])
    assert state(env) == before

    done = env.fix("--yes")
    assert (done["status"], done["why"]) == ("fixed", "")
    assert env.versions()["torch"] == "2.13.0+cu130"
    assert "# ours" in (bed.folder / "pixi.toml").read_text()
    assert "2.13.0+cu130" in (bed.folder / "pixi.lock").read_text()

    assert env.fix("--undo")["status"] == "undone"
    assert state(env) == before


def test_packages_of_conda_are_changed_and_undone(bed: Bed) -> None:
    env = project(bed)
    before = state(env)
    pixi, plan = resolved(env, "pixi add cuda-nvcc=12.9 pytorch-gpu", "pixi run python -c 'import torch'")
    assert {change.name: (change.before, change.after) for change in plan.changes} == {
        "conda:cuda-nvcc": ("12.0=h1_3", "12.9=0"),
        "conda:pytorch-gpu": (None, "1.0=0"),
    }
    assert (plan.pins, plan.removes) == ((), ())
    store = Store(str(env.path))
    with store.locked(print):
        assert apply(store, pixi, plan, lambda: "", lambda _: None) == ("", [])
        assert read_inventory(env.python).version_of("conda:cuda-nvcc") == "12.9=0"
        assert store.undo() == []
    assert state(env) == before


def test_all_twins_go_before_one_is_added(bed: Bed) -> None:
    env = project(bed, MANIFEST + 'cupy-cuda12x = { version = "==14.2.0" }\ncupy-cuda13x = { version = "==14.2.0" }\n')
    before = state(env)
    pixi, plan = resolved(env, "pixi remove --pypi cupy-cuda12x cupy-cuda13x", "pixi add --pypi cupy-cuda13x==14.2.0")
    assert [(change.name, change.after) for change in plan.changes] == [("cupy-cuda12x", None)]
    store = Store(str(env.path))
    with store.locked(print):
        assert apply(store, pixi, plan, lambda: "", lambda _: None) == ("", [])
        assert (env.packages / "cupy" / "only_13.py").exists()
        assert not (env.packages / "cupy" / "only_12.py").exists()
        assert store.undo() == []
    assert state(env) == before


def test_it_is_undone_if_pixi_fails_halfway(bed: Bed) -> None:
    env = project(bed)
    before = state(env)
    done = env.fix("--yes", STAND_IN_PIXI="fails")
    assert (done["status"], done["exit"], done["why"]) == ("undone", 1, "failed to link a package")
    assert state(env) == before


def test_what_pixi_cannot_solve_is_refused_in_one_line(bed: Bed) -> None:
    env = project(bed)
    before = state(env)
    with pytest.raises(Refused) as refused:
        resolved(env, "pixi add --pypi nosuch==1.0")
    assert str(refused.value) == (
        "pixi finds no versions that go together: Cannot solve the request because of: No candidates were found for"
        " nosuch *."
    )
    assert state(env) == before


def test_an_undo_is_refused_after_another_change(bed: Bed) -> None:
    env = project(bed)
    assert env.fix("--yes")["status"] == "fixed"
    with (bed.folder / "pixi.toml").open("a") as file:
        file.write("# mine\n")
    before = state(env)
    undone = env.fix("--undo")
    assert (undone["status"], undone["exit"]) == ("refused", 2)
    assert undone["why"].startswith("pixi.toml was changed after the fix")
    assert state(env) == before


def test_another_environment_of_the_project_is_left_to_its_feature(bed: Bed) -> None:
    env = project(bed)
    cuda = env.path.with_name("cuda")
    env.path.rename(cuda)
    done = Env(env.bed, cuda).fix("--yes")
    assert done["status"] == "refused"
    assert "is not pixi's default environment" in done["why"]


def test_pip_does_not_change_an_environment_of_pixi(bed: Bed) -> None:
    env = project(bed)
    before = state(env)
    command = f"{env.python} -m pip install --no-deps torch==2.13.0+cu130"
    step = step_of("torch-cpu-build", Remedy(summary="x", commands=(command,)), env.python)
    inventory = read_inventory(env.python)
    plan = make_plan([step], inventory, Pip(inventory, env.bed.variables))
    assert plan.why.startswith(f"{bed.folder / 'pixi.lock'} decides what is in {env.path}")
    assert plan.why.endswith("with pixi add --pypi torch==2.13.0+cu130")
    assert state(env) == before
