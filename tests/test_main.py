"""How the program starts and ends."""

from __future__ import annotations

import datetime
import os
import subprocess
import sys
from pathlib import Path

import pytest

import gpudoctor


@pytest.mark.parametrize(("arguments", "status"), [(["--fast"], 0), (["--fast", "--require", "gpu>=99"], 1)])
def test_a_check_leaves_with_its_status_and_all_of_its_report(
    arguments: list[str], status: int, tmp_path: Path
) -> None:
    report = tmp_path / "report.json"
    with report.open("wb") as output:
        command = [sys.executable, "-m", "gpudoctor", "check", "--format", "json", "--fail-on", "never", *arguments]
        done = subprocess.run(command, cwd=tmp_path, stdout=output, check=False)
    assert done.returncode == status
    assert report.read_text().endswith("}\n")


@pytest.mark.skipif(sys.platform == "win32", reason="redirections of a shell")
def test_a_start_without_standard_streams_still_ends_with_its_status(tmp_path: Path) -> None:
    command = f"exec {sys.executable} -m gpudoctor check --fast --require 'gpu>=99' >&- 2>&-"
    assert subprocess.run(["sh", "-c", command], cwd=tmp_path, check=False).returncode == 1


def test_the_version_with_the_date_of_each_table() -> None:
    command = [sys.executable, "-m", "gpudoctor", "--version", "--verbose"]
    first, *dates = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert first == f"gpudoctor, version {gpudoctor.__version__}"
    tables = [line.partition("  ")[2] for line in dates]
    assert {"drivers", "torch builds", "messages: cuda"} <= set(tables)
    assert all(datetime.date.fromisoformat(line.partition("  ")[0]) for line in dates)


@pytest.mark.parametrize("words", [["--quiet", "--gpu=optional"], ["--quiet", "--no-color", "check", "--gpu=optional"]])
def test_options_without_a_command_or_before_it(words: list[str], tmp_path: Path) -> None:
    command = [sys.executable, "-m", "gpudoctor", *words, "--fast", "--select=no-nvidia-gpu"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (len(done.stdout.splitlines()), done.stderr) == (1, "")


def test_an_unknown_option_is_named() -> None:
    command = [sys.executable, "-m", "gpudoctor", "--verbos"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "gpudoctor check: No such option '--verbos'" in done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="/dev/full")
@pytest.mark.parametrize(
    ("redirection", "errors"),
    [
        (">/dev/full", "gpudoctor: cannot write the output: No space left on device\n"),
        (">/dev/full 2>&1", ""),
    ],
)
@pytest.mark.parametrize("command", ["check --fast", "list", "--version --verbose"])
def test_a_full_disk_is_no_fault_of_the_program(command: str, redirection: str, errors: str, tmp_path: Path) -> None:
    line = f"exec {sys.executable} -m gpudoctor {command} {redirection}"
    environ = {**os.environ, "PYTHONPATH": str(Path(gpudoctor.__file__).parents[1])}
    done = subprocess.run(["sh", "-c", line], cwd=tmp_path, env=environ, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (3, errors)
