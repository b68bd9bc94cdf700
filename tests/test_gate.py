"""The preflight gate as a job calls it: requirements and configuration, by output and exit status."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
REPORT = str(ROOT / "examples" / "pasted_report.txt")


def gpudoctor(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "gpudoctor", *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": "1", "COLUMNS": "80"},
    )


def on_json(*arguments: str, folder: Path) -> tuple[int, dict[str, Any]]:
    done = gpudoctor("check", *arguments, "--format", "json", folder=folder)
    assert done.stderr == ""
    return done.returncode, json.loads(done.stdout)


def test_a_requirement_that_is_met(tmp_path: Path) -> None:
    status, report = on_json("module-shadowed", "--require", "python>=3.8", folder=tmp_path)
    assert (status, report["verdict"]) == (0, "healthy")
    assert "requirement-unmet" in report["passed"]


def probes_of(report: dict[str, Any]) -> dict[str, str]:
    return {entry["probe"]: entry["state"] for entry in report["snapshot"]["reports"]}


def test_what_a_requirement_reads_is_asked_for_whatever_is_selected(tmp_path: Path) -> None:
    _, report = on_json("--select", "module-shadowed", folder=tmp_path)
    assert probes_of(report)["profile"] == "not-run"
    _, report = on_json("--select", "module-shadowed", "--require", "profile", folder=tmp_path)
    assert probes_of(report)["profile"] != "not-run"


@pytest.mark.parametrize("ignored", [(), ("--ignore", "tool")])
def test_one_that_is_not_met_fails_whatever_fails_otherwise(tmp_path: Path, ignored: tuple[str, ...]) -> None:
    arguments = ("module-shadowed", "--require", "python>=99", "--fail-on", "never", *ignored)
    status, report = on_json(*arguments, folder=tmp_path)
    (finding,) = report["findings"]
    assert (status, finding["check"], finding["severity"]) == (1, "requirement-unmet", "error")
    assert finding["summary"].startswith("python>=99 is required, but Python is 3.")


def test_the_gate_is_left_out_only_by_its_own_name(tmp_path: Path) -> None:
    arguments = ("module-shadowed", "--require", "python>=99", "--ignore", "requirement-unmet")
    status, report = on_json(*arguments, folder=tmp_path)
    assert (status, report["skipped"][-1]["reason"]) == (0, "ignored on the command line")


def test_fast_cannot_determine_whether_torch_computes(tmp_path: Path) -> None:
    environment = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    (site,) = environment.glob("lib/python3*/site-packages")
    (site / "torch").mkdir()
    (site / "torch" / "__init__.py").touch()
    (site / "torch" / "version.py").write_text("__version__ = '2.13.0+cu130'\ncuda = '13.0'\nhip = None\n")
    required = ("--require", "torch.cuda", "--require", "torch>=2.4")
    python = str(environment / "bin" / "python")
    status, report = on_json("module-shadowed", "--fast", "--python", python, *required, folder=tmp_path)
    (unmet,) = [finding for finding in report["findings"] if finding["check"] == "requirement-unmet"]
    assert status == 1
    assert unmet["summary"].endswith("whether PyTorch can use a GPU is not known: PyTorch was not imported (--fast)")


@pytest.mark.parametrize("selected", [(), ("module-shadowed",), ("torch",)])
def test_an_unmet_requirement_comes_with_its_root_cause_and_fix(selected: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "torch.txt").write_text(
        "Python version: 3.11\nPyTorch version: 2.9.0+cpu\nCUDA available: False\n"
        "GPU 0: NVIDIA GeForce RTX 4090\nNvidia driver version: 580.95.05\n"
    )
    _, report = on_json(*selected, "--from", "torch.txt", "--require", "torch.cuda", folder=tmp_path)
    first, second, *_ = report["findings"]
    assert (first["check"], first["severity"]) == ("torch-cpu-build", "error")
    assert any("-m pip install" in command for remedy in first["remedies"] for command in remedy["commands"])
    assert (second["check"], second["caused_by"]) == ("requirement-unmet", "torch-cpu-build")


def test_a_cause_that_nobody_selected_is_given_only_with_what_it_explains(tmp_path: Path) -> None:
    _, report = on_json("module-shadowed", "--require", "python>=3.8", "--require", "shm>=1KiB", folder=tmp_path)
    ids = {*report["passed"], *(entry["check"] for entry in report["skipped"])}
    assert (report["findings"], ids) == ([], {"module-shadowed", "requirement-unmet"})


def test_requirements_are_judged_on_a_report(tmp_path: Path) -> None:
    required = ("--require", "driver>=535", "--require", "cuda>=13.0", "--require", "shm>=1GiB")
    status, report = on_json("--from", REPORT, *required, folder=tmp_path)
    unmet = {f["subject"]: f for f in report["findings"] if f["check"] == "requirement-unmet"}
    assert (status, set(unmet)) == (1, {"cuda>=13.0", "shm>=1GiB"})
    assert unmet["cuda>=13.0"]["summary"] == "cuda>=13.0 is required, but the driver supports CUDA 12.2"
    assert unmet["shm>=1GiB"]["details"] == {"requirement": "shm>=1GiB", "known": False}


def test_the_same_snapshot_is_judged_in_the_same_way(tmp_path: Path) -> None:
    required = ("--require", "gpu>=1", "--require", "torch>=99", "--fail-on", "never")
    _, live = on_json("requirement-unmet", *required, folder=tmp_path)
    (tmp_path / "machine.json").write_text(json.dumps(live["snapshot"]))
    _, again = on_json("requirement-unmet", "--from", "machine.json", *required, folder=tmp_path)
    assert again["findings"] == live["findings"]


def test_the_configuration_of_a_folder_above(tmp_path: Path) -> None:
    (tmp_path / "gpudoctor.toml").write_text(
        'require = ["python>=99"]\nignore = ["module-shadowed: it is meant to be"]\nselect = ["module-shadowed"]\n'
    )
    (tmp_path / "src").mkdir()
    status, report = on_json(folder=tmp_path / "src")
    assert (status, [finding["subject"] for finding in report["findings"]]) == (1, ["python>=99"])
    assert report["skipped"] == [{"check": "module-shadowed", "reason": "ignored in gpudoctor.toml: it is meant to be"}]
    assert "ignored in gpudoctor.toml: it is meant to be" in gpudoctor("check", "-v", folder=tmp_path / "src").stdout


def test_a_severity_of_the_configuration_is_that_of_the_verdict(tmp_path: Path) -> None:
    shutil.copy(REPORT, tmp_path / "report.txt")
    assert on_json("--from", "report.txt", folder=tmp_path)[0] == 1
    (tmp_path / "gpudoctor.toml").write_text('[severity]\ndriver-too-old = "warning"\n')
    status, report = on_json("--from", "report.txt", folder=tmp_path)
    assert (status, report["verdict"]) == (0, "warning")
    (tmp_path / "gpudoctor.toml").write_text('fail_on = "warning"\n[severity]\ndriver-too-old = "warning"\n')
    assert on_json("--from", "report.txt", folder=tmp_path)[0] == 1
    assert on_json("--from", "report.txt", "--fail-on", "error", folder=tmp_path)[0] == 0


def test_the_profile_of_the_configuration_is_looked_at(tmp_path: Path) -> None:
    (tmp_path / "deploy").mkdir()
    (tmp_path / "src").mkdir()
    (tmp_path / "gpudoctor.toml").write_text('profile = "deploy/gpudoctor.env"\n')
    (tmp_path / "deploy" / "gpudoctor.env").write_text("GPUDOCTOR_SCHEMA=gpudoctor/profile/99\n")
    _, report = on_json("profile-stale", "--require", "profile", folder=tmp_path / "src")
    summaries = [finding["summary"] for finding in report["findings"]]
    path = os.path.join("..", "deploy", "gpudoctor.env")
    assert summaries[0].startswith(f"The profile {path} cannot be used: ")
    assert summaries[1].startswith(f"profile is required, but {path} cannot be used: ")


@pytest.mark.parametrize(
    ("arguments", "text", "line"),
    [
        (
            ["--require", "gpus>=1"],
            "",
            "gpudoctor: --require: there is no requirement 'gpus': did you mean gpu?",
        ),
        ([], 'requir = ["gpu"]', "gpudoctor: gpudoctor.toml line 1: requir: no such key: did you mean require?"),
        ([], '\nrequire = ["vram>=\\u001b[31mblue"]', "gpudoctor: gpudoctor.toml line 2: require: vram>="),
        ([], "select = [", "gpudoctor: gpudoctor.toml"),
        (["--from", "gpudoctor.toml"], "x = 1", "gpudoctor: gpudoctor.toml line 1: x: no such key"),
    ],
)
def test_a_mistake_is_one_line(arguments: list[str], text: str, line: str, tmp_path: Path) -> None:
    (tmp_path / "gpudoctor.toml").write_text(text)
    done = gpudoctor("check", *arguments, folder=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(line)
    assert done.stderr.count("\n") == 1
    assert "\x1b" not in done.stderr


def test_the_gate_explains_itself(tmp_path: Path) -> None:
    page = gpudoctor("explain", "requirement-unmet", folder=tmp_path).stdout
    assert "If a value cannot be read, the requirement fails." in " ".join(page.split())
