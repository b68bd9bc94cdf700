"""`gpudoctor profile` as its users call it."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from gpudoctor.profiles.env_file import read_profile, write_profile
from gpudoctor.profiles.export import FORMATS, export
from tests.profiles.samples import LEAST, PROFILE


def gpudoctor(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    root = Path(__file__).parent.parent
    return subprocess.run(
        [sys.executable, "-m", "gpudoctor", *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(root), "NO_COLOR": "1", "COLUMNS": "80"},
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_profile(tmp_path / "gpudoctor.env", PROFILE)
    return tmp_path


def test_show(folder: Path) -> None:
    done = gpudoctor("profile", "show", "gpudoctor.env", folder=folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert "batch size  256 (at most 900)\n" in done.stdout
    as_json = gpudoctor("profile", "show", "gpudoctor.env", "--format", "json", folder=folder)
    assert json.loads(as_json.stdout)["batch_size"] == 256


@pytest.mark.parametrize("format_name", FORMATS)
def test_export(format_name: str, folder: Path) -> None:
    done = gpudoctor("profile", "export", "gpudoctor.env", "--format", format_name, folder=folder)
    assert (done.returncode, done.stdout, done.stderr) == (0, export(PROFILE, format_name), "")


def test_export_into_a_file(folder: Path) -> None:
    done = gpudoctor("profile", "export", "gpudoctor.env", "--format", "env", "--output", "copy.env", folder=folder)
    assert (done.returncode, done.stdout, read_profile(folder / "copy.env")) == (0, "", PROFILE)


def test_a_stale_profile_is_reported_by_both_commands(folder: Path) -> None:
    write_profile(folder / "gpudoctor.env", replace(PROFILE, fingerprint="driver:1.02,torch:0.4.1"))
    done = gpudoctor("profile", "verify", "gpudoctor.env", folder=folder)
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.startswith("stale\n")
    assert "  torch   0.4.1 → " in done.stdout
    checked = gpudoctor("check", "profile-stale", "--format", "json", "--fail-on", "warning", folder=folder)
    report = json.loads(checked.stdout)
    assert [finding["check"] for finding in report["findings"]] == ["profile-stale"]
    (folder / "snapshot.json").write_text(json.dumps(report["snapshot"]))
    again = gpudoctor("check", "profile-stale", "--from", "snapshot.json", "--format", "json", folder=folder)
    assert json.loads(again.stdout)["findings"] == report["findings"]


def test_a_profile_that_fits(folder: Path) -> None:
    write_profile(folder / "gpudoctor.env", LEAST)
    done = gpudoctor("profile", "verify", "gpudoctor.env", folder=folder)
    assert (done.returncode, done.stdout) == (0, "fits\n  device  cpu\n")


def test_what_cannot_be_determined_is_no_answer(folder: Path) -> None:
    write_profile(folder / "gpudoctor.env", replace(LEAST, fingerprint=""))
    done = gpudoctor("profile", "verify", "gpudoctor.env", folder=folder)
    assert (done.returncode, done.stdout) == (3, "cannot be determined\n")


def test_without_a_command_there_is_help(folder: Path) -> None:
    done = gpudoctor("profile", folder=folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert all(f"\n  {command} " in done.stdout for command in ("show", "export", "verify"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["show", "nowhere.env"], "gpudoctor: nowhere.env: No such file or directory\n"),
        (["verify", "nowhere.env"], "gpudoctor: nowhere.env: No such file or directory\n"),
        (["show", "damaged.env"], "gpudoctor: damaged.env line 2: 'B' is not of the form NAME=value\n"),
        (
            ["export", "gpudoctor.env", "--format", "yaml"],
            f"gpudoctor: --format: 'yaml' is not one of {', '.join(FORMATS)}\n",
        ),
        (
            ["export", "gpudoctor.env", "--format", "env", "--output", "nowhere/x"],
            "gpudoctor: cannot write nowhere/x: No such file or directory\n",
        ),
    ],
)
def test_a_mistake_is_one_line(arguments: list[str], message: str, folder: Path) -> None:
    (folder / "damaged.env").write_text("A=1\nB\n")
    done = gpudoctor("profile", *arguments, folder=folder)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", message)
