"""Projects of uv and poetry: their own command changes their files and their environment, and both come back."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.fixing.beds import UV, Bed, Env
from tests.fixing.registry import DEFAULT, registry

UV_PROJECT = """\
[project]
name = "demo"
version = "1.0"
requires-python = ">=3.10"
# ours
dependencies = [
    "torch==2.13.0+cpu",  # the CPU
    "numpy==2.4.6",
]
"""
POETRY_PROJECT = """\
[tool.poetry]
package-mode = false

[tool.poetry.dependencies]
python = ">=3.10"  # ours
numpy = "2.4.6"
torch = "2.13.0+cpu"

[[tool.poetry.source]]
name = "tests"
url = "%s"
priority = "primary"
"""


@pytest.fixture
def project(request: pytest.FixtureRequest, bed: Bed) -> Iterator[Env]:
    """Return the environment of a project, whose lock file is of the tool that is asked for."""
    tool = request.param
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed")
    with registry(bed.index, bed.folder / "registry") as variables:
        home = {"VIRTUAL_ENV": str(bed.folder / ".venv"), "POETRY_CACHE_DIR": str(bed.folder / "poetry-cache")}
        bed = replace(bed, variables={**bed.variables, **variables, **home})
        text = UV_PROJECT if tool == "uv" else POETRY_PROJECT % DEFAULT
        (bed.folder / "pyproject.toml").write_text(text)
        if tool == "uv":
            bed.run("uv", "sync", "--quiet", "--directory", str(bed.folder), "--python", sys.executable)
        else:
            bed.run(sys.executable, "-m", "venv", "--without-pip", str(bed.folder / ".venv"))
            bed.run("poetry", "--directory", str(bed.folder), "install", "--quiet")
        yield Env(bed, bed.folder / ".venv")


def files(env: Env) -> dict[str, str]:
    folder = env.path.parent
    return {path.name: path.read_text() for path in (folder / "pyproject.toml", *folder.glob("*.lock"))}


@pytest.mark.parametrize("project", ["uv", "poetry"], indirect=True)
def test_the_lock_is_changed_verified_and_undone(project: Env) -> None:
    before, texts = project.state(), files(project)
    planned = project.fix("--dry-run")
    assert (planned["status"], planned["why"]) == ("planned", "")
    (step,) = planned["plan"]
    assert step["kind"] == "project"
    (change,) = step["changes"]
    assert (change["name"], change["from"], change["to"]) == ("torch", "2.13.0+cpu", "2.13.0+cu130")
    assert any(line.startswith("+") and "2.13.0+cu130" in line for line in step["diff"])
    assert (project.state(), files(project)) == (before, texts)

    done = project.fix("--yes")
    assert (done["status"], done["why"]) == ("fixed", "")
    assert project.versions()["torch"] == "2.13.0+cu130"
    after = files(project)
    assert "2.13.0+cu130" in after["pyproject.toml"]
    assert "# ours" in after["pyproject.toml"]
    assert all("2.13.0+cu130" in text for text in after.values())

    assert project.fix("--undo")["status"] == "undone"
    assert (project.state(), files(project)) == (before, texts)


@pytest.mark.parametrize("project", ["uv"], indirect=True)
@pytest.mark.parametrize("change", ["pyproject.toml", "package", "file"])
def test_an_undo_is_refused_after_another_change(project: Env, change: str) -> None:
    assert project.fix("--yes")["status"] == "fixed"
    if change == "pyproject.toml":
        path = project.path.parent / "pyproject.toml"
        path.write_text(f"{path.read_text()}\n# mine\n")
    elif change == "package":
        project.bed.run("uv", "pip", "install", "--quiet", "--python", project.python, "tiny==1.0", "cuda-pathfinder")
    else:
        (project.packages / "mine.pth").write_text("/mine\n")
    before, texts = project.state(), files(project)
    undone = project.fix("--undo")
    assert (undone["status"], undone["exit"]) == ("refused", 2)
    assert "was changed after the fix" in undone["why"]
    assert (project.state(), files(project)) == (before, texts)


@pytest.mark.parametrize("project", ["uv"], indirect=True)
def test_a_failure_restores_the_files_and_the_environment(project: Env) -> None:
    before, texts = project.state(), files(project)
    wheel = project.bed.index / "torch-2.13.0+cu130-py3-none-any.whl"
    data = wheel.read_bytes()
    at = data.index(b"__version__")
    wheel.write_bytes(data[:at] + b"X" + data[at + 1 :])
    done = project.fix("--yes")
    assert (done["status"], done["exit"]) == ("undone", 1)
    assert (project.state(), files(project)) == (before, texts)


def test_a_lock_without_a_project_is_refused(bed: Bed) -> None:
    if UV is None:
        pytest.skip("uv is not installed")
    env = bed.environment("torch==2.13.0+cpu", "tiny", name=".venv")
    (Path(bed.folder) / "uv.lock").touch()
    done = env.fix("--yes")
    assert done["status"] == "refused"
    assert "has no pyproject.toml" in done["why"]
