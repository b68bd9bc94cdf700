"""`gpudoctor fix` and `gpudoctor install` as a user types them."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys

import pytest

from tests.conftest import Install
from tests.fixing.beds import Bed
from tests.fixing.conftest import bed, bundled_pip
from tests.stand_ins import Cuda, Nvml
from tests.wheels import make_wheel

__all__ = ["bed", "bundled_pip"]

NO_DRIVER = {"LD_LIBRARY_PATH": "", "STAND_IN_NVML": "", "STAND_IN_CUDA": ""}
CPU = ("torch==2.13.0+cpu", "tiny")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(("fix", "torch-cpu-bild"), "no check is called 'torch-cpu-bild': did you mean", id="mistyped"),
        pytest.param(("fix", "--undo", "torch-cpu-build"), "--undo takes no ids", id="undo of one"),
        pytest.param(("fix", "--undo", "--dry-run"), "--undo has no plan to show", id="undo without a change"),
        pytest.param(("fix", "--continue"), "there is no fix to continue", id="nothing to go on with"),
        pytest.param(("fix", "--undo"), "there is nothing to undo", id="nothing to undo"),
        pytest.param(("install",), "Missing argument", id="nothing to install"),
        pytest.param(("install", "scipy"), "'scipy' is not one of torch, torchvision", id="not in the tables"),
        pytest.param(("install", "--index-url=x"), "No such option", id="an option of pip"),
        pytest.param(("install", "torch @ file:///x"), "is not one of torch", id="an address"),
        pytest.param(("install", "torch==2.99"), "torch 2.99 is not in gpudoctor's tables", id="unknown version"),
        pytest.param(("install", "cupy>=13"), "name one version as cupy==VERSION", id="a range of CuPy"),
        pytest.param(("install", "torch>=2"), "name one version as torch==VERSION", id="a range"),
        pytest.param(
            ("install", "torch==2.13.0", "torchvision==0.20.0"),
            "torchvision 0.20.0 does not belong to torch 2.13.0: torchvision 0.28.0 does",
            id="not together",
        ),
        pytest.param(("install", "cupy-cuda12x", "cupy-cuda13x"), "CuPy packages install the same files", id="twins"),
        pytest.param(("install", "cupy", "cupy"), "cupy is named twice", id="twice"),
    ],
)  # fmt: skip
def test_wrong_use_is_one_line_and_changes_nothing(arguments: tuple[str, ...], message: str, bed: Bed) -> None:
    env = bed.environment()
    before = env.state()
    done = env.gpudoctor(*arguments)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert message in done.stderr
    assert env.state() == before


@pytest.mark.parametrize("arguments", [("--undo",), ("torch-cpu-bild",), ("--continue",), ("--script",)])
def test_an_error_is_a_result_too_in_json(arguments: tuple[str, ...], bed: Bed) -> None:
    done = bed.environment().fix(*arguments)
    assert (done["exit"], done["status"], done["plan"]) == (2, "refused", [])
    assert done["said"] == f"gpudoctor: {done['why']}\n"


@pytest.mark.parametrize("arguments", [("--yes",), ("--yes", "--format", "json"), ("--undo",)])
def test_the_exit_status_is_the_fixs_own_if_its_result_cannot_be_written(bed: Bed, arguments: tuple[str, ...]) -> None:
    env = bed.environment(*CPU)
    if "--undo" in arguments:
        assert env.fix("--yes")["status"] == "fixed"
    command = [sys.executable, "-m", "gpudoctor", "fix", *arguments, "--python", env.python, "--fast"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            command,
            env=dict(bed.variables),
            cwd=bed.folder,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    how = f"{env.path} is as before" if "--undo" in arguments else "the "
    assert f"gpudoctor: the result cannot be written (No space left on device); {how}" in done.stderr
    assert env.versions()["torch"] == ("2.13.0+cpu" if "--undo" in arguments else "2.13.0+cu130")


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ((), "too little is known to fix anything: gpudoctor check says what is missing"),
        (
            ("torch-cpu-build",),
            "whether torch-cpu-build is here cannot be determined: gpudoctor check -v torch-cpu-build",
        ),
    ],
)
def test_too_little_known_is_no_success(bed: Bed, names: tuple[str, ...], message: str) -> None:
    env = bed.environment()
    (bed.folder / "gpudoctor.toml").write_text('ignore = ["no-nvidia-gpu"]\n')
    before = env.state()
    done = env.gpudoctor("fix", *names, "--yes", **NO_DRIVER)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (3, "", 1)
    assert done.stderr.startswith(f"gpudoctor: {message}")
    assert env.fix(*names, "--yes", **NO_DRIVER)["exit"] == 3
    assert env.state() == before


def test_a_check_that_passed_is_determined(bed: Bed) -> None:
    done = bed.environment().fix("pynvml-deprecated", "--yes", **NO_DRIVER)
    assert (done["exit"], done["why"]) == (0, "pynvml-deprecated is not found here")


def test_what_is_no_python_is_wrong_use(bed: Bed) -> None:
    command = [sys.executable, "-m", "gpudoctor", "fix", "--python", "/bin/true"]
    done = subprocess.run(command, env=dict(bed.variables), capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("gpudoctor: /bin/true is not a Python interpreter")


def test_without_an_answer_nothing_changes(bed: Bed) -> None:
    env = bed.environment(*CPU)
    before = env.state()
    done = env.gpudoctor("fix")
    assert done.returncode == 2
    assert done.stderr.endswith("gpudoctor: nothing was changed: add --yes to apply the plan, or --dry-run to see it\n")
    assert env.state() == before


@pytest.mark.parametrize(("answer", "status"), [(b"n\n", 2), (b"y\n", 0)])
def test_it_asks_in_a_terminal(bed: Bed, answer: bytes, status: int) -> None:
    env = bed.environment(*CPU)
    command = [sys.executable, "-m", "gpudoctor", "fix", "--fast", "--python", env.python]
    master, slave = pty.openpty()
    with subprocess.Popen(
        command, env=dict(bed.variables), cwd=bed.folder, stdin=slave, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        os.close(slave)
        os.write(master, answer)
        _, error = process.communicate()
    os.close(master)
    assert process.returncode == status, error
    assert b"torch  2.13.0+cpu -> 2.13.0+cu130 (" in error
    assert b"kB to download)" in error
    assert b"Apply this plan?" in error
    assert env.versions()["torch"] == ("2.13.0+cu130" if status == 0 else "2.13.0+cpu")


def test_everything_together_is_one_plan(bed: Bed) -> None:
    env = bed.environment("numpy==2.4.6")
    done = env.gpudoctor("install", "torch==2.13.0", "torchvision", "torchaudio", "cupy", "--yes")
    assert done.returncode == 0, done.stderr
    assert "driver 580.65.06 and compute capability 8.9" in done.stdout.splitlines()[0]  # the reason
    expected = {"torch": "2.13.0+cu130", "torchvision": "0.28.0+cu130", "torchaudio": "2.11.0+cu130"}
    assert {**expected, "cupy-cuda13x": "14.2.0"}.items() <= env.versions().items()
    again = env.gpudoctor("install", "torch==2.13.0", "torchvision", "--yes")
    assert (again.returncode, again.stdout.splitlines()[-1]) == (
        0,
        "Nothing to do: everything that is named is installed.",
    )


def test_an_install_next_to_an_activated_environment_is_refused(bed: Bed) -> None:
    env = bed.environment()
    command = [sys.executable, "-m", "gpudoctor", "install", "torch", "--fast", "--dry-run"]
    variables = {**bed.variables, "VIRTUAL_ENV": str(env.path)}
    done = subprocess.run(command, env=variables, cwd=bed.folder, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"gpudoctor: {env.path} is activated, and gpudoctor runs in {sys.prefix}: name ")


def test_what_fits_nothing_here_is_explained(bed: Bed) -> None:
    env = bed.environment()
    done = env.gpudoctor("install", "torch==1.8.0")
    said = json.loads(env.gpudoctor("install", "torch==1.8.0", "--format", "json").stdout)
    assert (done.returncode, said["status"], said["plan"]) == (2, "refused", [])
    assert done.stderr == f"gpudoctor: {said['why']}\n"
    assert done.stderr.startswith("gpudoctor: torch 1.8.0 has no build for this machine: Install PyTorch 2.14.1 built")


def test_without_a_gpu_it_is_the_build_for_the_cpu(bed: Bed) -> None:
    env = bed.environment()
    done = env.gpudoctor("install", "torch==2.13.0", "torchvision", "--yes", **NO_DRIVER)
    assert done.returncode == 0, done.stderr
    assert {"torch": "2.13.0+cpu", "torchvision": "0.28.0+cpu"}.items() <= env.versions().items()
    done = env.gpudoctor("install", "cupy", **NO_DRIVER)
    assert (done.returncode, "CuPy needs an NVIDIA GPU" in done.stderr) == (2, True)


def test_a_lock_file_of_another_tool_is_left_to_it(bed: Bed) -> None:
    env = bed.environment(*CPU, name=".venv")
    (bed.folder / "pdm.lock").touch()
    before = env.state()
    for arguments in (("--dry-run",), ("--yes",), ("--script",)):
        done = env.gpudoctor("fix", *arguments)
        assert done.returncode == 2
        assert "pdm.lock decides what is in" in done.stderr
        assert "change the lock instead, with pdm add torch==2.13.0+cu130" in done.stderr
    assert env.fix("--yes")["status"] == "refused"
    assert env.state() == before


def test_project_files_are_shown_and_changed(bed: Bed) -> None:
    env = bed.environment(*CPU)
    requirements = bed.folder / "requirements.txt"
    requirements.write_text("# ours\ntorch==2.13.0+cpu  # the CPU\n")
    shown = env.gpudoctor("fix", "--project", "--dry-run").stdout
    assert "     +torch==2.13.0+cu130  # the CPU\n" in shown
    assert "+cpu  #" in requirements.read_text()
    assert env.fix("--project", "--yes")["status"] == "fixed"
    assert requirements.read_text() == "# ours\ntorch==2.13.0+cu130  # the CPU\n"
    undone = env.fix("--undo")
    assert (undone["status"], undone["exit"], undone["plan"]) == ("undone", 0, [])
    assert undone["why"] == f"{env.path} and requirements.txt are as before the fix"
    assert requirements.read_text() == "# ours\ntorch==2.13.0+cpu  # the CPU\n"


@pytest.mark.parametrize("arguments", [("--dry-run",), ("--yes",), ("--script",)])
def test_a_project_file_that_is_not_read_is_named_first(bed: Bed, arguments: tuple[str, ...]) -> None:
    env = bed.environment(*CPU)
    (bed.folder / "requirements.txt").write_bytes("torch==2.13.0+cpu  # für die CPU\n".encode("latin-1"))
    done = env.gpudoctor("fix", "--project", *arguments)
    assert done.returncode == 0
    assert done.stderr.splitlines()[0] == (
        "gpudoctor: requirements.txt was not read, and stays as it is: it is not UTF-8 text"
    )


def test_a_project_file_that_cannot_be_written_undoes_the_fix(bed: Bed) -> None:
    env = bed.environment(*CPU)
    project = bed.folder / "project"
    project.mkdir()
    (project / "requirements.txt").write_text("torch==2.13.0+cpu\n")
    before = env.state()
    subprocess.run(["mount", "--bind", project, project], check=False, capture_output=True)
    if subprocess.run(["mount", "-o", "remount,ro,bind", project], check=False, capture_output=True).returncode:
        pytest.skip("no folder can be made read-only here")
    try:
        command = [sys.executable, "-m", "gpudoctor", "fix", "--yes", "--project", "--fast", "--python", env.python]
        done = subprocess.run(
            command, env=dict(bed.variables), cwd=project, capture_output=True, text=True, check=False
        )
    finally:
        subprocess.run(["umount", "--lazy", project], check=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.endswith(f"requirements.txt: {project} cannot be written. Nothing was changed\n")
    assert env.state() == before


def test_a_project_file_that_changes_meanwhile_undoes_the_fix(bed: Bed) -> None:
    requirements = bed.folder / "requirements.txt"
    # Importing the new package stands for a person who saves the file while the fix runs.
    save = f"open({str(requirements)!r}, 'w').write('mine')\n"
    make_wheel(bed.index, "torchvision", "0.28.0+cu130", {"torchvision/__init__.py": save}, ["torch==2.13.0"])
    env = bed.environment(*CPU, "torchvision==0.28.0+cpu")
    requirements.write_text("torch==2.13.0+cpu\n")
    before = env.state()
    done = env.fix("--project", "--yes")
    assert (done["exit"], done["status"]) == (2, "refused")
    assert done["why"].endswith("run gpudoctor fix again. Everything is as before")
    assert (env.state(), requirements.read_text()) == (before, "mine")


def test_the_hint_names_the_environment(bed: Bed) -> None:
    env = bed.environment(*CPU, name="my venv")
    done = env.gpudoctor("fix", "--yes")
    undo = f"gpudoctor fix --undo --python '{env.python}'"
    assert done.stdout.splitlines()[-1] == f"Fixed and verified. To undo it: {undo}"


def test_what_is_still_found_is_named(bed: Bed) -> None:
    env = bed.environment(*CPU, "numpy==2.4.6", "cupy-cuda12x", "cupy-cuda13x", name="v")
    go_on = f"gpudoctor fix --python {env.python}"
    first = env.gpudoctor("fix", "--yes").stdout.splitlines()
    assert first[-2].startswith("Fixed and verified.")
    assert first[-1] == f"Still found: cupy-multiple-packages. To go on: {go_on}"
    second = env.gpudoctor("fix", "--yes").stdout.splitlines()
    assert (env.versions()["torch"], second[-1].startswith("Fixed and verified.")) == ("2.13.0+cu130", True)
    assert env.gpudoctor("fix", "--yes").stdout == "Nothing to do: nothing is found that needs a fix.\n"


def test_nobody_answers_without_standard_input(bed: Bed) -> None:
    env = bed.environment(*CPU)
    command = f"{sys.executable} -m gpudoctor fix --fast --python {env.python} <&-"
    done = subprocess.run(
        command, shell=True, env=dict(bed.variables), cwd=bed.folder, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (
        2,
        "gpudoctor: nothing was changed: add --yes to apply the plan, or --dry-run to see it\n",
    )


def test_a_script_does_not_forget_the_files(bed: Bed) -> None:
    env = bed.environment(*CPU)
    (bed.folder / "requirements.txt").write_text("torch==2.13.0+cpu\n")
    lines = env.gpudoctor("fix", "--script", "--project").stdout.splitlines()
    assert "# +torch==2.13.0+cu130" in lines
    assert lines[-1] == "exit 1"


def test_a_project_file_that_was_changed_since_is_named_by_the_undo(bed: Bed) -> None:
    env = bed.environment(*CPU)
    requirements = bed.folder / "requirements.txt"
    requirements.write_text("torch==2.13.0+cpu\n")
    assert env.fix("--project", "--yes")["status"] == "fixed"
    requirements.write_text("torch==2.13.0+cu130\nmine\n")
    done = env.gpudoctor("fix", "--undo")
    assert done.returncode == 1
    assert done.stdout.splitlines()[0].endswith("requirements.txt was changed after the fix, and left alone")
    assert "     -torch==2.13.0+cpu" in done.stdout.splitlines()
    assert (env.versions()["torch"], requirements.read_text()) == ("2.13.0+cpu", "torch==2.13.0+cu130\nmine\n")


def test_a_step_by_hand_is_printed_and_the_fix_goes_on_after_it(bed: Bed, driver_stand_in: Install) -> None:
    env = bed.environment(*CPU)
    mismatch = driver_stand_in(bed.folder / "old", nvml=Nvml(fail={"nvmlInit": 18}), cuda=Cuda(fail={"cuInit": 803}))
    found = env.fix("driver-library-mismatch", "torch-cpu-build", "--yes", **mismatch)
    assert [(step["check"], step["kind"]) for step in found["plan"]] == [("driver-library-mismatch", "system")]
    assert (found["status"], found["exit"]) == ("not-fixed", 1)
    assert env.versions()["torch"] == "2.13.0+cpu"
    assert env.fix("--continue", "--yes")["status"] == "fixed"
    assert env.versions()["torch"] == "2.13.0+cu130"
    assert env.gpudoctor("fix", "--continue").returncode == 2  # once
