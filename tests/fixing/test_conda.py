"""conda: its dry run is the plan, its command makes the change, and the whole environment comes back."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest

from gpudoctor.fixing.actions import actions_of, kind_of
from gpudoctor.fixing.conda import Conda
from gpudoctor.fixing.environment import read_inventory
from gpudoctor.fixing.plan import make_plan, step_of
from gpudoctor.fixing.programs import Refused
from gpudoctor.fixing.result import FixResult, plan_lines, render_json
from gpudoctor.fixing.store import Store
from gpudoctor.fixing.transaction import apply
from gpudoctor.model import Remedy
from tests.fixing.beds import ROOT, Bed, Env
from tests.fixing.conda_stand_in import SIZE, package


@pytest.fixture
def env(bed: Bed) -> Env:
    """Return an environment as conda makes it, with a PyTorch for the CPU. conda is a stand-in."""
    program = bed.folder / "conda"
    program.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -m tests.fixing.conda_stand_in "$@"\n')
    program.chmod(0o755)
    made = replace(bed, variables={**bed.variables, "CONDA_EXE": str(program)}).environment("numpy==2.4.6", "tiny")
    package(made.path, "pytorch", "2.5.1", "cpu_0")
    package(made.path, "zlib", "1.3", "0")
    (made.path / "conda-meta" / "history").write_text("==> the beginning <==\n")
    return made


def remedy(env: Env, *specs: str) -> Remedy:
    names = " ".join(specs or ("pytorch-gpu", "cuda-version=12"))
    return Remedy(summary="x", commands=(f"conda install --yes --prefix {env.path} --channel conda-forge {names}",))


def fixed(env: Env, **variables: str) -> str:
    inventory = read_inventory(env.python)
    conda = Conda(inventory, {**env.bed.variables, **variables})
    plan = make_plan([step_of("torch-cpu-build", remedy(env), env.python)], inventory, conda)
    assert (plan.why, [step.kind for step in plan.steps]) == ("", ["environment"])
    assert plan.resolution is not None
    store = Store(inventory.prefix)
    with store.locked(print):
        why, left = apply(store, conda, plan.resolution, lambda: "", lambda _: None)
    assert left == []
    return why


def test_the_plan_is_condas_own(env: Env) -> None:
    before, inventory = env.state(), read_inventory(env.python)
    conda = Conda(inventory, env.bed.variables)
    plan = make_plan([step_of("torch-cpu-build", remedy(env), env.python)], inventory, conda)
    assert [(c.name, c.before, c.after, c.size_bytes) for c in plan.changes] == [
        ("conda:pytorch", "2.5.1=cpu_0", "2.6.0=cuda126_0", SIZE),
        ("conda:cuda-version", None, "12.6=h1_3", SIZE),
    ]
    assert "       pytorch       2.5.1=cpu_0 -> 2.6.0=cuda126_0 (424.2 kB to download)" in plan_lines(plan)
    assert "conda:" not in render_json(FixResult(plan=plan, status="planned"))
    assert env.state() == before


def test_it_is_applied_and_undone(env: Env) -> None:
    before = env.state()
    assert fixed(env) == ""
    assert (env.path / "nvvm" / "pytorch" / "cuda126_0").exists()
    assert read_inventory(env.python).version_of("torch") == "2.6.0"
    assert read_inventory(env.python).version_of("conda:pytorch") == "2.6.0=cuda126_0"
    store = Store(str(env.path))
    with store.locked(print):
        assert store.undo() == []
    assert env.state() == before
    assert not (env.path / "nvvm" / "cuda-version").exists()


def test_it_is_undone_if_conda_fails_halfway(env: Env) -> None:
    before = env.state()
    assert fixed(env, STAND_IN_CONDA="fails") == "CondaError: it fails halfway"
    assert env.state() == before


@pytest.mark.parametrize("change", ["package", "file"])
def test_an_undo_is_refused_after_another_change(env: Env, change: str) -> None:
    assert fixed(env) == ""
    if change == "package":
        package(env.path, "other", "1", "0")
    else:
        (env.path / "share").mkdir(exist_ok=True)
        (env.path / "share" / "mine.txt").touch()
    before, store = env.state(), Store(str(env.path))
    with store.locked(print), pytest.raises(Refused, match="was changed after the fix"):
        store.undo()
    assert env.state() == before


def test_what_conda_cannot_solve_is_refused(env: Env) -> None:
    conda = Conda(read_inventory(env.python), env.bed.variables)
    with pytest.raises(Refused, match="conda finds no solution: The following packages are not available:"):
        conda.resolve(actions_of(remedy(env, "nosuch"), env.python))


def test_without_conda_it_is_refused(env: Env) -> None:
    conda = Conda(read_inventory(env.python), {"PATH": str(env.packages)})
    with pytest.raises(Refused, match="conda made this environment and is not on PATH"):
        conda.resolve(actions_of(remedy(env), env.python))


@pytest.mark.parametrize(
    "command",
    [
        pytest.param("conda install --yes --prefix /other pytorch", id="another environment"),
        pytest.param("conda install --yes pytorch", id="the active environment"),
        pytest.param(
            "conda install --yes --prefix /c --channel https://example.com/x pytorch", id="an unknown channel"
        ),
        pytest.param("conda remove --yes --prefix /c --force pytorch", id="without what needs it"),
        pytest.param("conda install --yes --prefix /c", id="nothing"),
        pytest.param("conda install --yes --prefix /c ./x.conda", id="a file"),
        pytest.param("conda update --yes --prefix /c --all", id="everything"),
    ],
)
def test_commands_of_conda_that_are_left_to_a_person(command: str) -> None:
    assert actions_of(Remedy(summary="x", commands=(command,)), "/c/bin/python") == ()
    assert kind_of(Remedy(summary="x", commands=("conda remove --yes --prefix /c cpuonly",)), "/c/bin/python") == (
        "environment"
    )
