"""What the README promises: its two commands work from a clean clone, in an environment with nothing but pip."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def command_after(marker: str) -> str:
    """Return the command in the code block after `marker`."""
    block = README.partition(f"<!-- {marker} -->")[2].split("```")[1]
    return block.strip()


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the tree as a clone has it, with an environment of its own beside it."""
    folder = tmp_path_factory.mktemp("clone")
    ignored = shutil.ignore_patterns(".git", ".cache", ".venv", "build", "*.egg-info", "__pycache__", ".*_cache")
    shutil.copytree(ROOT, folder / "gpudoctor", ignore=ignored)
    subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
    return folder


def run(command: str, clone: Path) -> subprocess.CompletedProcess[str]:
    path = f"{clone / 'venv' / 'bin'}{os.pathsep}{os.environ['PATH']}"
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    return subprocess.run(
        command,
        shell=True,
        capture_output=True,
        text=True,
        check=False,
        cwd=clone / "gpudoctor",
        env={**environment, "PATH": path},
    )


@pytest.mark.environments
def test_the_install_command_installs_and_diagnoses(clone: Path) -> None:
    done = run(command_after("the install command"), clone)
    if "No matching distribution found" in done.stdout + done.stderr:
        pytest.skip("the packages that gpudoctor needs cannot be fetched")
    assert done.returncode in (0, 1), done.stderr
    assert "gpudoctor" in done.stdout
    installed = run("cd / && gpudoctor check --fast --fail-on never --format json", clone)
    assert json.loads(installed.stdout)["schema"] == "gpudoctor/report/1"
    assert run("cd / && gpudoctor list", clone).stdout == run("python -m gpudoctor list", clone).stdout


def test_the_test_command_names_the_extra() -> None:
    assert command_after("the test command") == "python -m pip install -e '.[test]' && python -m pytest"


def test_the_example_of_a_report_says_that() -> None:
    command, *expected = command_after("the report example").removeprefix("console\n$ gpudoctor ").splitlines()
    done = subprocess.run(
        [sys.executable, "-m", "gpudoctor", *command.split()],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={**os.environ, "COLUMNS": "80", "NO_COLOR": "1"},
    )
    assert done.returncode == 1
    assert done.stdout.splitlines()[: len(expected)] == expected


def test_every_option_named_exists() -> None:
    options = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", README)) - {"--index-url"}
    help_text = subprocess.run(
        [sys.executable, "-m", "gpudoctor", "check", "--help"], capture_output=True, text=True, check=True, cwd=ROOT
    ).stdout
    assert options
    assert [option for option in options if option not in help_text] == []
