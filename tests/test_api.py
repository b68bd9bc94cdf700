"""gpudoctor in programs: the objects of the JSON, without a command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from html import unescape
from pathlib import Path

import pytest

import gpudoctor
from gpudoctor.errors import UsageError
from gpudoctor.model import Report, Snapshot
from gpudoctor.model.codec import to_json
from gpudoctor.model.tuning import Tuning
from gpudoctor.profiles.env_file import read_profile
from gpudoctor.reporters import json_report, tuning_json
from tests.environments import python_of
from tests.test_imports import SLOW

TOO_OLD = "PyTorch version: 2.9.0+cu130\nCUDA used to build PyTorch: 13.0\nNvidia driver version: 535.183.01\n"


def python(program: str, folder: Path) -> str:
    """Return what `program` prints."""
    root = Path(__file__).parent.parent
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(root)},
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_the_import_costs_nothing(tmp_path: Path) -> None:
    program = "import sys; before = set(sys.modules); import gpudoctor; print(*set(sys.modules) - before)"
    assert python(program, tmp_path) == "gpudoctor\n"


def test_a_check_imports_no_gpu_library_and_no_command_line(tmp_path: Path) -> None:
    program = "import sys, gpudoctor; gpudoctor.check('cupy-missing'); print(*sys.modules)"
    assert set(python(program, tmp_path).split()) & ({*SLOW, "click"}) == set()


def test_check_answers_as_the_command_does(tmp_path: Path) -> None:
    printed = python(
        "import sys, gpudoctor; from gpudoctor.reporters import json_report\n"
        "print(json_report.render(gpudoctor.check('shm-too-small', 'cupy', ignore=['cupy-missing'], fast=True)))",
        tmp_path,
    )
    command = "from gpudoctor.commands.cli import main; import sys; sys.argv = ['gpudoctor', *sys.argv[1:]]; main()"
    arguments = ["shm-too-small", "cupy", "--ignore", "cupy-missing", "--fast", "--format", "json"]
    done = subprocess.run(
        [sys.executable, "-c", command, "check", *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)},
    )
    ours, theirs = json.loads(printed), json.loads(done.stdout)
    for part in ("findings", "passed", "skipped"):
        assert ours[part] == theirs[part]


def test_a_pasted_report(tmp_path: Path) -> None:
    file = tmp_path / "report.txt"
    file.write_text(TOO_OLD)
    report = gpudoctor.check(files=[file])
    assert isinstance(report, Report)
    assert (report.verdict, report.findings[0].check_id) == ("error", "driver-too-old")
    assert json.loads(json_report.render(report))["findings"][0]["check"] == "driver-too-old"


def test_a_report_shows_itself_in_a_notebook(tmp_path: Path) -> None:
    file = tmp_path / "report.txt"
    file.write_text(TOO_OLD)
    shown = gpudoctor.check(files=[file])._repr_html_()  # type: ignore[attr-defined]
    assert shown.startswith('<iframe srcdoc="')
    assert shown.count("<") == 2  # the page is in the attribute, whole and quoted
    page = unescape(shown)
    assert "driver-too-old" in page
    assert "<!doctype html>" in page.lower()


def test_a_snapshot_gives_the_same_findings(tmp_path: Path) -> None:
    taken = gpudoctor.take_snapshot(fast=True)
    assert isinstance(taken, Snapshot)
    file = tmp_path / "snapshot.json"
    file.write_text(json_report.render_snapshot(taken))
    assert to_json(gpudoctor.check(files=[file]).snapshot.system) == to_json(taken.system)


def test_the_configuration_of_the_working_directory_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gpudoctor.toml").write_text('require = ["torch>=999"]\nignore = ["cupy-missing: no CuPy here"]\n')
    monkeypatch.chdir(tmp_path)
    report = gpudoctor.check("cupy", "shm-too-small", ignore=["shm-too-small"], fast=True)
    assert "requirement-unmet" in [finding.check_id for finding in report.findings]
    reasons = {result.check_id: result.reason for result in report.skipped}
    assert reasons["cupy-missing"] == "ignored in gpudoctor.toml: no CuPy here"
    assert reasons["shm-too-small"] == "ignored on the command line"


def test_in_a_thread() -> None:
    reports: list[Report] = []
    threads = [threading.Thread(target=lambda: reports.append(gpudoctor.check("shm-too-small"))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [len(report.results) for report in reports] == [1, 1]


def test_a_mistake_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="did you mean torch-cpu-build"):
        gpudoctor.check("torch-cpu-bild")
    with pytest.raises(UsageError, match="/nowhere/python is not a program"):
        gpudoctor.take_snapshot(python="/nowhere/python")
    with pytest.raises(UsageError, match=r"memory_fraction \(2\)"):
        gpudoctor.tune(memory_fraction=2)
    with pytest.raises(UsageError, match="goal: 'speed' is not one of throughput, latency"):
        gpudoctor.tune(goal="speed")
    with pytest.raises(UsageError, match=r"cannot read no\.json: No such file"):
        gpudoctor.tune(compare="no.json")
    with pytest.raises(UsageError, match="GPU BATCH"):
        gpudoctor.tune(variables={"GPU BATCH": "{batch_size}"})


def test_there_is_nothing_else() -> None:
    with pytest.raises(AttributeError, match="module 'gpudoctor' has no attribute 'chekc'"):
        _ = gpudoctor.chekc  # type: ignore[attr-defined]
    assert {"check", "take_snapshot", "tune", "load_profile"} <= set(dir(gpudoctor))


@pytest.mark.environments
def test_tune_measures_and_writes_the_profile(tmp_path: Path) -> None:
    told: list[str] = []
    tuning = gpudoctor.tune(
        "mlp",
        device="cpu",
        precisions=["fp32"],
        budget=1.0,
        dataset_size=64,
        profile=tmp_path / "gpudoctor.env",
        variables={"GPU_BATCH_SIZE": "{batch_size}"},
        python=python_of("torch-cpu"),
        say=told.append,
    )
    assert isinstance(tuning, Tuning)
    assert tuning.recommendation is not None
    assert tuning.profile == str(tmp_path / "gpudoctor.env")
    assert read_profile(tmp_path / "gpudoctor.env").own == {"GPU_BATCH_SIZE": str(tuning.recommendation.batch_size)}
    assert json.loads(tuning_json.render(tuning))["schema"] == "gpudoctor/tuning/1"
    assert any("fp32" in text for text in told)
    assert tuning._repr_html_().startswith("<iframe ")  # type: ignore[attr-defined]
