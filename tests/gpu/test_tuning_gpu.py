"""The tuner's workers on a real GPU, with torch and with CuPy, its memory cut down so that it is soon full."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpudoctor.model.tuning import OK, OUT_OF_MEMORY, UNSUPPORTED, Measurement, Settings, Trial
from gpudoctor.tuning.executor import Effort
from gpudoctor.tuning.local import LocalExecutor, Target

pytestmark = pytest.mark.gpu

GIB = 2**30
EFFORT = Effort(warmup_steps=2, steps=9, limit_seconds=3.0)


@pytest.fixture(scope="module")
def interpreter() -> str:
    """Return the interpreter whose libraries are to be used: GPUDOCTOR_TEST_PYTHON, else this one."""
    if not Path("/dev/nvidiactl").exists():
        pytest.skip("needs an NVIDIA GPU with its driver")
    return os.environ.get("GPUDOCTOR_TEST_PYTHON", sys.executable)


@pytest.fixture(scope="module")
def mlp(interpreter: str) -> Iterator[LocalExecutor]:
    """Return an executor that may use 2 GiB of the device."""
    if interpreter == sys.executable and importlib.util.find_spec("torch") is None:
        pytest.skip("needs PyTorch in this environment")
    target = Target(workload="mlp", device="cuda:0", memory_limit_bytes=2 * GIB)
    with LocalExecutor(interpreter, target) as executor:
        yield executor


def measure(executor: LocalExecutor, size: int, precision: str, **settings: object) -> Measurement:
    trial = Trial(precision=precision, batch_size=size, settings=Settings(**settings))  # type: ignore[arg-type]
    return executor.measure(trial, EFFORT)


def test_the_device_is_described(mlp: LocalExecutor) -> None:
    device = mlp.describe()
    assert (device.kind, device.index) == ("cuda", 0)
    assert device.name
    assert device.driver_version
    assert device.cuda_version
    assert device.compute_capability
    assert device.memory_usable_bytes is not None
    assert device.memory_usable_bytes <= 2 * GIB
    known = {*device.precisions, *(reason.partition(":")[0] for reason in device.unsupported)}
    assert known == {"fp32", "tf32", "bf16", "fp16"}


def test_every_precision_is_measured_with_its_memory_and_conditions(mlp: LocalExecutor) -> None:
    for precision in mlp.describe().precisions:
        measurement = measure(mlp, 64, precision)
        assert (measurement.status, measurement.detail) == (OK, "")
        assert measurement.tflops
        assert measurement.peak_memory_bytes is not None
        assert measurement.resident_memory_bytes is not None
        assert measurement.reserved_memory_bytes is not None
        assert 150e6 < measurement.resident_memory_bytes < measurement.peak_memory_bytes
        assert measurement.peak_memory_bytes <= measurement.reserved_memory_bytes <= 2 * GIB
        assert measurement.conditions.clock_mhz
        assert measurement.conditions.throttle_reasons is not None


def test_memory_that_is_full_is_an_outcome_and_the_next_trial_runs(mlp: LocalExecutor) -> None:
    assert measure(mlp, 2**20, "fp32").status == OUT_OF_MEMORY
    assert measure(mlp, 64, "fp32").status == OK


def test_the_memory_of_a_batch_does_not_depend_on_the_trials_before(mlp: LocalExecutor) -> None:
    first = measure(mlp, 256, "fp32").peak_memory_bytes
    measure(mlp, 4096, "fp32")
    again = measure(mlp, 256, "fp32").peak_memory_bytes
    assert first is not None
    assert again is not None
    assert abs(again - first) < 8 * 2**20


def test_settings(mlp: LocalExecutor) -> None:
    assert measure(mlp, 64, "fp32", cudnn_benchmark=True).status == OK
    assert measure(mlp, 64, "fp32", allocator="expandable_segments:True").status == OK
    assert measure(mlp, 64, "fp32", channels_last=True).status == UNSUPPORTED


def test_no_ceiling_is_above_the_datasheet(mlp: LocalExecutor) -> None:
    for precision in mlp.describe().precisions:
        ceiling = mlp.ceiling(precision)
        assert ceiling.measured_tflops
        datasheet = measure(mlp, 64, precision).peak_tflops
        if datasheet:
            assert 0.2 < ceiling.measured_tflops / datasheet < 1.02
    bandwidth = mlp.bandwidth()
    assert bandwidth.measured_gb_s
    if bandwidth.datasheet_gb_s:
        assert 0.3 < bandwidth.measured_gb_s / bandwidth.datasheet_gb_s < 1.02


def test_transfers(mlp: LocalExecutor) -> None:
    measure(mlp, 4096, "fp32")
    assert mlp.transfers()


def test_a_device_side_assert_ends_the_worker_and_no_other(
    mlp: LocalExecutor, interpreter: str, tmp_path: Path
) -> None:
    from gpudoctor.errors import WorkloadError

    (tmp_path / "train.py").write_text(
        "import torch\n"
        "class Work:\n"
        "    def __init__(self, device, precision):\n"
        "        self.table = torch.zeros(4, device=device)\n"
        "    def make_batch(self, size):\n"
        "        return torch.full((size,), 9, device=self.table.device)\n"
        "    def step(self, batch):\n"
        "        return self.table[batch]\n"
    )
    target = Target(workload=f"{tmp_path / 'train.py'}:Work", device="cuda:0")
    with LocalExecutor(interpreter, target) as executor, pytest.raises(WorkloadError, match="device-side assert"):
        executor.measure(Trial(precision="fp32", batch_size=8), EFFORT)
    assert measure(mlp, 64, "fp32").status == OK


def test_the_workload_of_arrays(interpreter: str) -> None:
    if interpreter == sys.executable and importlib.util.find_spec("cupy") is None:
        pytest.skip("needs CuPy in this environment")
    target = Target(workload="signal", device="cuda:0", memory_limit_bytes=GIB)
    with LocalExecutor(interpreter, target) as executor:
        assert executor.describe().precisions == ("complex128", "complex64")
        small = measure(executor, 64, "complex64")
        assert (small.status, small.detail) == (OK, "")
        assert small.peak_memory_bytes
        assert measure(executor, 2**20, "complex64").status == OUT_OF_MEMORY
