"""What README and docs promise: commands and programs work in a clean clone, in an environment with nothing but pip."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gpudoctor.engine.catalog import load_checks
from gpudoctor.engine.plan import project_configuration
from gpudoctor.engine.runner import run_one
from gpudoctor.model import Driver, DriverVersion, Snapshot
from tests.environments import python_of

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
PAGES = [README, *(page.read_text() for page in sorted((ROOT / "docs").glob("*.md")))]


def command_after(marker: str) -> str:
    """Return the command in the code block after `marker`, in the README or in docs/."""
    page = next(page for page in PAGES if f"<!-- {marker} -->" in page)
    block = page.partition(f"<!-- {marker} -->")[2].split("```")[1]
    return block.strip().removeprefix("bash\n")


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
    command = "python -m pip install -e '.[test]' && python -m pytest -n auto --dist worksteal"
    assert command_after("the test command") == command


@pytest.mark.environments
def test_the_program_with_a_profile_runs(tmp_path: Path) -> None:
    example = (ROOT / "examples" / "gpudoctor.env").read_text()
    (tmp_path / "gpudoctor.env").write_text(example)
    program = command_after("the profile program").removeprefix("python\n")
    done = subprocess.run(
        [python_of("torch-cpu"), "-c", program + "\nprint(profile.batch_size, model.weight.grad)"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert (done.returncode, done.stdout) == (0, "8192 None\n"), done.stderr


def test_the_gate_stops_what_stands_behind_it(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print('trained')")
    command = command_after("the gate").replace("gpudoctor", f"{sys.executable} -m gpudoctor")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(
        command, shell=True, capture_output=True, text=True, check=False, cwd=tmp_path, env=environment
    )
    assert (done.returncode, done.stderr) == (1, "")
    assert "gpu>=1 is required, but no GPU can be used" in " ".join(done.stdout.split())
    assert "trained" not in done.stdout


def test_the_configuration_can_be_read(tmp_path: Path) -> None:
    (tmp_path / "gpudoctor.toml").write_text(command_after("the configuration").removeprefix("toml\n"))
    found = project_configuration(str(tmp_path))
    assert [requirement.text for requirement in found.require] == ["gpu>=1", "torch.cuda"]
    assert found.ignore == {"persistence-mode-off": "ignored in gpudoctor.toml: the cluster sets it at night"}


def test_the_pytest_options_are_those_of_the_plugin() -> None:
    command = command_after("the pytest options").replace("pytest", f"{sys.executable} -m pytest", 1)
    done = subprocess.run(
        f"{command} -p gpudoctor.pytest_plugin --help",
        shell=True,
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    )
    assert (done.returncode, "--gpudoctor-require" in done.stdout) == (0, True), done.stderr


def test_the_python_program_runs(tmp_path: Path) -> None:
    program = command_after("the Python program").removeprefix("python\n")
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": ""},
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "error requirement-unmet gpu>=1 is required, but no GPU can be used" in done.stdout


def test_the_plugin_is_a_check(tmp_path: Path) -> None:
    (tmp_path / "ours.py").write_text(command_after("the plugin").removeprefix("python\n"))
    checks = {check.id: check for check in load_checks(str(tmp_path))}
    snapshot = Snapshot(driver=Driver(version=DriverVersion.parse("550.54.15")))
    (finding,) = run_one(checks["driver-not-approved"], snapshot).findings
    assert finding.summary == "The driver is 550.54.15, ours is R580"
