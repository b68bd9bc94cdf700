"""`pytest --gpudoctor` stops a GPU suite before collection where the machine cannot run it."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from gpudoctor.model import Finding, NextStep, Remedy, Report, Severity, Snapshot, Triage
from gpudoctor.pytest_plugin import reason_of
from tests.conftest import Install
from tests.stand_ins import RTX_4090, Cuda, Nvml

ROOT = Path(__file__).parent.parent
SUITE = "import sys\nprint('COLLECTED')\ndef test_modules(): print('MODULES', *sys.modules)\n"


def run(folder: Path, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a suite of one test with the plugin, as where gpudoctor is installed."""
    (folder / "test_suite.py").write_text(SUITE)
    outer = {n: v for n, v in os.environ.items() if n not in ("CUDA_VISIBLE_DEVICES", "PYTEST_ADDOPTS")}
    plugin = () if "gpudoctor.pytest_plugin" in installed_plugins() else ("-p", "gpudoctor.pytest_plugin")
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-s", "-p", "no:cacheprovider", *plugin, *options, "test_suite.py"],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={**outer, "PYTHONPATH": str(ROOT), **environment},
    )


def installed_plugins() -> set[str]:
    """Return the modules of the plugins that pytest loads by itself."""
    from importlib.metadata import entry_points

    return {entry.value for entry in entry_points(group="pytest11")}


def test_it_costs_nothing_if_it_is_not_asked_for(tmp_path: Path) -> None:
    done = run(tmp_path)
    assert done.returncode == 0
    modules = set(done.stdout.partition("MODULES")[2].split())
    assert {name for name in modules if name.startswith("gpudoctor")} == {"gpudoctor", "gpudoctor.pytest_plugin"}


def test_a_machine_without_a_gpu_stops_the_suite(tmp_path: Path, driver_stand_in: Install) -> None:
    environment = driver_stand_in(tmp_path / "none", nvml=Nvml(devices=()), cuda=Cuda(devices=()))
    done = run(tmp_path, "--gpudoctor", **environment)
    assert done.returncode == 1
    assert "gpudoctor: this machine cannot run the suite" in done.stdout + done.stderr
    assert "COLLECTED" not in done.stdout


def test_a_machine_with_its_gpu_runs_the_suite(tmp_path: Path, driver_stand_in: Install) -> None:
    environment = driver_stand_in(tmp_path / "driver", nvml=Nvml(devices=(RTX_4090,)), cuda=Cuda(devices=(RTX_4090,)))
    done = run(tmp_path, "--gpudoctor", **environment)
    assert (done.returncode, "COLLECTED" in done.stdout) == (0, True), done.stdout
    done = run(tmp_path, "--gpudoctor-require", "vram>=500GiB", **environment)
    assert (done.returncode, "COLLECTED" in done.stdout) == (1, False)
    assert "requirement-unmet: vram>=500GiB is required" in done.stdout + done.stderr


def test_a_misspelt_requirement_is_a_usage_error(tmp_path: Path) -> None:
    done = run(tmp_path, "--gpudoctor-require", "vran>=24GiB")
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "did you mean vram?" in done.stderr


def report(*findings: Finding) -> Report:
    return Report(version="1", snapshot=Snapshot(), results=(), findings=findings)


def test_the_reason_is_the_root_cause_and_its_fix() -> None:
    fix = Remedy(summary="Load it", commands=("sudo modprobe nvidia", "nvidia-smi"))
    cause = Finding(
        severity=Severity.ERROR, check_id="driver-not-loaded", summary="It is not\x1b loaded", remedies=(fix,)
    )
    other = Finding(
        severity=Severity.ERROR, check_id="requirement-unmet", summary="gpu>=1 is required, but 0 are there"
    )
    assert reason_of(report(cause, other)).splitlines() == [
        "gpudoctor: this machine cannot run the suite",
        r"driver-not-loaded: It is not\x1b loaded",
        "fix: Load it",
        "  sudo modprobe nvidia",
        "  nvidia-smi",
        "(and 1 more: gpudoctor check)",
    ]


def test_without_a_verdict_there_is_no_reason_to_start() -> None:
    assert reason_of(report()).startswith("gpudoctor: verdict unknown: ")
    step = NextStep(command="nvidia-smi", why="Shows whether the driver answers.")
    unknown = replace(report(), triage=Triage(next_steps=(step,)))
    assert reason_of(unknown).splitlines()[1:] == ["next: Shows whether the driver answers.", "  nvidia-smi"]


ERRORS = tuple(Finding(severity=Severity.ERROR, check_id=name, subject=name, summary=name) for name in "abc")


@pytest.mark.parametrize(
    ("findings", "shown", "more"),
    [
        (ERRORS[:1], ["a: a"], ""),
        (ERRORS, ["a: a"], "(and 2 more: gpudoctor check)"),
        ((replace(ERRORS[0], caused_by="b"), *ERRORS[1:]), ["b: b", "a: a"], "(and 1 more: gpudoctor check)"),
        ((replace(ERRORS[0], caused_by="gone"), ERRORS[1]), ["a: a"], "(and 1 more: gpudoctor check)"),
        ((replace(ERRORS[1], severity=Severity.WARNING), ERRORS[0]), ["a: a"], ""),
    ],
)
def test_the_cause_comes_first_and_the_others_are_counted(
    findings: tuple[Finding, ...], shown: list[str], more: str
) -> None:
    assert reason_of(report(*findings)).splitlines()[1:] == [*shown, *([more] if more else [])]
