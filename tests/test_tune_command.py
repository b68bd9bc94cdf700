"""`gpudoctor tune` as a whole: bad input in one line, and real runs on the CPU."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.environments import python_of

ROOT = Path(__file__).parent.parent
WORKLOAD = """
import time

class Work:
    def __init__(self, device, precision):
        self.device = device
    def make_batch(self, size):
        return [0.5] * size
    def step(self, batch):
        time.sleep(0.001)
        return sum(batch)
"""


def start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "gpudoctor", "tune", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": "1"},
    )


def run(folder: Path, *arguments: str) -> tuple[int, str, str]:
    process = start(folder, *arguments)
    output, errors = process.communicate(timeout=300)
    return process.returncode, output, errors


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(["--workload", "ccn"], "no workload is called 'ccn': did you mean cnn?", id="unknown workload"),
        pytest.param(["--budget", "0"], "'--budget': 0.0 is not in the range x>0", id="no budget"),
        pytest.param(["--precision", "fp9"], "'fp9' is not one of 'fp32'", id="unknown precision"),
        pytest.param(["--profile", "no/such/folder/x.env"], "cannot write no/such/folder/x.env", id="profile"),
        pytest.param(["--output", "no/such/folder/x.json"], "cannot write no/such/folder/x.json", id="report"),
        pytest.param(["--set", "A={nope}"], "there is no {nope}", id="template"),
        pytest.param(["--python", "/no/such/python"], "/no/such/python is not a program", id="interpreter"),
    ],
)
def test_bad_input_is_one_line_and_writes_nothing(tmp_path: Path, arguments: list[str], message: str) -> None:
    status, output, errors = run(tmp_path, *arguments)
    assert (status, output) == (2, "")
    assert message in errors
    assert errors.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.environments
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(["--device", "cuda:7"], "--device cuda:7: no such device; this machine has cpu", id="device"),
        pytest.param(["--workload", "gone.py:Work"], "there is no file gone.py", id="missing file"),
    ],
)
def test_what_is_not_there(tmp_path: Path, arguments: list[str], message: str) -> None:
    status, _, errors = run(tmp_path, *arguments, "--python", str(python_of("torch-cpu")))
    assert (status, errors) == (2, f"gpudoctor: {message}\n")


@pytest.mark.environments
def test_without_torch_it_says_what_to_do(tmp_path: Path) -> None:
    status, _, errors = run(tmp_path, "--python", str(python_of("no-torch")))
    assert status == 3
    assert "No module named 'torch'" in errors
    assert "gpudoctor check torch" in errors


@pytest.mark.environments
def test_the_users_bug_is_shown_as_that(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(WORKLOAD.replace("sum(batch)", "batch.mean()"))
    status, _, errors = run(tmp_path, "--workload", "train.py:Work", "--python", str(python_of("torch-cpu")))
    assert status == 2
    assert "AttributeError: 'list' object has no attribute 'mean'" in errors.splitlines()[-1]
    assert "in step" in errors, "the traceback"
    assert not (tmp_path / "gpudoctor.env").exists()


@pytest.mark.environments
def test_a_real_run_on_the_cpu(tmp_path: Path) -> None:
    """Of the built-in perceptron: a report with every raw value, and a profile that a shell reads."""
    python = str(python_of("torch-cpu"))
    for budget in ("8", "32", "128"):  # a busy machine may measure nothing in the first
        status, output, errors = run(
            tmp_path, "--workload", "mlp", "--precision", "fp32", "--budget", budget, "--format", "json",
            "--python", python, "--set", "BATCH={batch_size}",
        )  # fmt: skip
        report = json.loads(output)
        assert (status, errors) == (1 if report["recommendation"] is None else 0, "")
        if report["recommendation"]:
            break
    assert report["schema"] == "gpudoctor/tuning/1"
    assert report["recommendation"]["precision"] == "fp32"
    assert all(m["step_seconds"] for m in report["measurements"] if m["status"] == "ok")
    assert report["profile"] == "gpudoctor.env"
    shell = ["sh", "-c", 'set -a; . ./gpudoctor.env; echo "$GPUDOCTOR_PRECISION $BATCH"']
    told = subprocess.run(shell, cwd=tmp_path, capture_output=True, text=True, check=True).stdout.split()
    assert told == ["fp32", str(report["recommendation"]["batch_size"])]


@pytest.mark.environments
def test_a_precision_that_raises_is_a_result_and_no_fault(tmp_path: Path) -> None:
    """As an LSTM under autocast does on a CPU without AVX-512: forced here, on any processor."""
    step = "assert self.name != 'bf16', 'could not create a primitive descriptor'\n        time"
    workload = WORKLOAD.replace("self.device = device", "self.name = precision.name").replace("time", step)
    (tmp_path / "train.py").write_text(workload.replace(step, "time", 1))
    status, output, errors = run(
        tmp_path, "--workload", "train.py:Work", "--precision", "bf16", "--format", "json",
        "--python", str(python_of("torch-cpu")),
    )  # fmt: skip
    assert (status, errors) == (1, ""), "no configuration ran, and nobody's code is wrong"
    (left_out,) = json.loads(output)["measurements"]
    assert (left_out["precision"], left_out["status"], left_out["batch_size"]) == ("bf16", "unsupported", 0)
    assert "could not create a primitive descriptor" in left_out["detail"]


@pytest.mark.environments
def test_an_interruption_shows_what_is_known_and_leaves_no_worker(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(WORKLOAD.replace("0.001", "0.2"))
    process = start(
        tmp_path, "--workload", "train.py:Work", "--budget", "600", "--format", "json", "--python",
        str(python_of("torch-cpu")),
    )  # fmt: skip
    while not (workers := _children(process.pid)):
        time.sleep(0.1)
    time.sleep(3)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 3
    assert json.loads(output)["interrupted"] == "signal"
    assert not (tmp_path / "gpudoctor.env").exists()
    assert workers
    assert not [pid for pid in workers if Path(f"/proc/{pid}").exists()]


def _children(pid: int) -> list[str]:
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    return [child for task in tasks for child in task.read_text().split()]
