"""A package that a project asks for in a group, an extra or a workspace member is changed there, by hand."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.fixing.beds import UV, Bed, Env
from tests.fixing.registry import registry

HEAD = '[project]\nname = "demo"\nversion = "1.0"\nrequires-python = ">=3.10"\ndependencies = ["numpy==2.4.6"]\n\n'
PINNED = '["torch==2.13.0+cpu"]\n'
MEMBER = HEAD.replace('"demo"', '"app"').replace('["numpy==2.4.6"]\n', PINNED)
pytestmark = pytest.mark.skipif(UV is None, reason="uv is not installed")


@pytest.fixture
def online(bed: Bed) -> Iterator[Bed]:
    with registry(bed.index, bed.folder / "registry") as variables:
        yield replace(bed, variables={**bed.variables, **variables})


@pytest.mark.parametrize(
    ("text", "option"),
    [
        (f"{HEAD}[dependency-groups]\nml = {PINNED}", ["--group", "ml"]),
        (f"{HEAD}[project.optional-dependencies]\ngpu = {PINNED}", ["--optional", "gpu"]),
        (f'{HEAD}[tool.uv.workspace]\nmembers = ["app"]\n', ["--package", "app"]),
    ],
)
def test_the_refusal_names_commands_that_work(online: Bed, text: str, option: list[str]) -> None:
    (online.folder / "pyproject.toml").write_text(text)
    (online.folder / "app").mkdir()
    (online.folder / "app" / "pyproject.toml").write_text(MEMBER)
    everything = ("--all-groups", "--all-extras", "--all-packages")
    online.run("uv", "sync", "--quiet", *everything, "--directory", str(online.folder), "--python", sys.executable)
    env = Env(online, online.folder / ".venv")
    before = env.state()
    done = env.fix("--yes")
    assert (done["status"], done["exit"], env.state()) == ("refused", 2, before)
    why, _, command = done["why"].partition(", with ")
    assert why == f"the project asks for another version with {' '.join(option)}: change it there, in {online.folder}"
    words = shlex.split(command)
    assert words[:4] == ["uv", "add", *option]
    subprocess.run(words, cwd=online.folder, env=dict(online.variables), check=True, capture_output=True)
    assert env.versions()["torch"] == "2.13.0+cu130"
