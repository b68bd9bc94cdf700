"""`gpudoctor watch` as a whole, and the metrics of `run`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

from tests.conftest import Install
from tests.stand_ins import GIB, H100, Nvml
from tests.test_run_command import BUSY_GPU, COMMAND, environment, with_gpu

WATCH = [sys.executable, "-m", "gpudoctor", "watch"]


def test_a_program_that_already_runs(driver_stand_in: Install, tmp_path: Path) -> None:
    variables = environment(with_gpu(driver_stand_in, tmp_path, BUSY_GPU.but(event_reasons=0x40)))
    command = [sys.executable, "-c", "import time; time.sleep(4)", "--token", "hunter2"]
    program = subprocess.Popen(command)
    options = ["--pid", str(program.pid), "--every", "0.1", "--format", "json"]
    done = subprocess.run([*WATCH, *options], env=variables, capture_output=True, text=True, timeout=60, check=False)
    assert program.wait() == 0
    assert (done.returncode, done.stderr) == (0, "")
    report = json.loads(done.stdout)
    assert (report["schema"], report["exit_status"]) == ("gpudoctor/run/1", None)
    assert [finding["check"] for finding in report["findings"]] == ["throttled"]
    assert report["watch"]["samples"][-1]["processes"] == 1
    if os.path.isdir("/proc/self"):
        assert report["command"] == [*command[:-1], "***"]


def test_all_gpus_for_a_while(driver_stand_in: Install, tmp_path: Path) -> None:
    variables = environment(driver_stand_in(tmp_path, nvml=Nvml(devices=(H100.but(memory_used=2 * GIB),))))
    options = ["--seconds", "1.5", "--every", "0.1"]
    done = subprocess.run([*WATCH, *options], env=variables, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("gpudoctor watch: all GPUs watched for")
    assert "GPU 0 NVIDIA H100 80GB HBM3" in done.stdout
    assert "The steps were not watched: without --pid, only the GPUs are.\n" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 100


def test_sigterm_ends_it_with_the_report(driver_stand_in: Install, tmp_path: Path) -> None:
    variables = environment(driver_stand_in(tmp_path, nvml=Nvml(devices=(H100,))))
    process = subprocess.Popen(
        [*WATCH, "--every", "0.1", "--metrics-port", "0"],
        env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stderr is not None
    address = process.stderr.readline().removeprefix("Metrics: ").strip()
    urllib.request.urlopen(address, timeout=20).close()  # it listens before it answers: the watch has begun
    process.send_signal(signal.SIGTERM)
    output, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (0, "")
    assert output.startswith("gpudoctor watch: all GPUs watched for")


def test_no_such_process() -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    command = [*WATCH, "--pid", str(gone.pid)]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (2, f"gpudoctor: --pid: no process {gone.pid}\n")


def test_metrics_while_a_program_runs(driver_stand_in: Install, tmp_path: Path) -> None:
    variables = environment(with_gpu(driver_stand_in, tmp_path, BUSY_GPU))
    program = "import sys, time; print('ready', flush=True); sys.stdin.read()"
    process = subprocess.Popen(
        [*COMMAND, "--every", "0.05", "--metrics-port", "0", "--", sys.executable, "-c", program],
        env=variables,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    address = process.stderr.readline().removeprefix("Metrics: ").strip()
    text = ""
    while "gpudoctor_gpu_utilization_ratio" not in text:
        with urllib.request.urlopen(address, timeout=10) as answer:
            text = answer.read().decode()
    assert 'gpudoctor_gpu_utilization_ratio{gpu="0"} 0.97' in text
    process.communicate("", timeout=60)
    assert process.returncode == 0
