"""NVML that answers one call with an error, or is lost in the middle: the report comes, and says what is missing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gpudoctor.model import Run
from gpudoctor.reporters import run_words
from gpudoctor.watching.samples import DeviceSample, Sample, Watch, WatchedDevice
from gpudoctor.watching.watched import WatchedRun
from tests.conftest import Install
from tests.stand_ins import Nvml
from tests.test_run_command import BUSY_GPU, COMMAND, environment
from tests.test_watch_command import WATCH

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the stand-in is a Linux library")
NOT_SUPPORTED, LOST, UNKNOWN = 3, 15, 999
RUN = [*COMMAND, "--every", "0.05", "--", sys.executable, "-c", "import time; time.sleep(0.7)"]
WATCHED = [*WATCH, "--every", "0.05", "--seconds", "0.5"]
MISSING = {
    "nvmlDeviceGetName": "NVML does not report for GPU 0: name (",
    "nvmlDeviceGetUtilizationRates": "NVML does not report for GPU 0: utilisation (",
    "nvmlDeviceGetMemoryInfo": "NVML does not report for GPU 0: memory (",
    "nvmlDeviceGetComputeRunningProcesses_v3": "NVML does not report for GPU 0: processes (",
    "nvmlDeviceGetClockInfo": "NVML does not report for GPU 0: SM clock (",
    "nvmlDeviceGetMaxClockInfo": "NVML does not report for GPU 0: highest SM clock (",
    "nvmlDeviceGetPowerUsage": "NVML does not report for GPU 0: power draw (",
    "nvmlDeviceGetEnforcedPowerLimit": "NVML does not report for GPU 0: power limit (",
    "nvmlDeviceGetTemperature": "NVML does not report for GPU 0: temperature (",
    "nvmlDeviceGetCurrentClocksEventReasons": "NVML does not report for GPU 0: reasons for lower clocks (",
    "nvmlDeviceGetPcieThroughput": "NVML does not report for GPU 0: PCIe traffic (",
    "nvmlDeviceGetMigMode": "GPU 0 NVIDIA H100",
    "nvmlDeviceGetUUID": "GPU 0 NVIDIA H100",
    "nvmlDeviceGetCount": "NVML does not count the GPUs: ",
    "nvmlDeviceGetHandleByIndex": "the GPU was not watched: GPU 0: ",
    "nvmlInit": "NVML does not start: ",
}


@pytest.mark.parametrize("function", MISSING)
def test_one_call_that_fails(function: str, driver_stand_in: Install, tmp_path: Path) -> None:
    code = (NOT_SUPPORTED, LOST, UNKNOWN)[list(MISSING).index(function) % 3]
    variables = environment(
        {**driver_stand_in(tmp_path, nvml=Nvml(devices=(BUSY_GPU,), fail={function: code})), "COLUMNS": "200"}
    )
    for command in (RUN, WATCHED):
        done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=60, check=False)
        text = done.stdout + done.stderr
        assert done.returncode == 0, text
        assert MISSING[function] in text
        assert "Traceback" not in text


def test_a_gpu_that_is_lost_next_to_one_that_works(driver_stand_in: Install, tmp_path: Path) -> None:
    lost = BUSY_GPU.but(fail={"nvmlDeviceGetHandleByIndex": LOST})
    variables = environment({**driver_stand_in(tmp_path, nvml=Nvml(devices=(BUSY_GPU, lost))), "COLUMNS": "200"})
    done = subprocess.run(RUN, env=variables, capture_output=True, text=True, timeout=60, check=False)
    assert "Not watched: GPU 1: GPU is lost." in done.stderr
    assert "GPU 0 NVIDIA H100" in done.stderr


def test_a_gpu_that_is_lost_in_the_middle() -> None:
    ok, gone = DeviceSample(nvml_index=0, utilization_percent=90), DeviceSample(nvml_index=0, problem="GPU is lost")
    samples = tuple(Sample(at_seconds=at, devices=(ok if at < 8 else gone,)) for at in range(1, 10))
    watch = Watch(devices=(WatchedDevice(nvml_index=0),), samples=samples)
    run = WatchedRun(command=("x",), exit_status=0, elapsed_seconds=9, every_seconds=1, watch=watch, run=Run())
    note = "NVML reported nothing about GPU 0 in 2 samples, first after 8.0 s: GPU is lost."
    assert note in list(run_words.notes(run))
