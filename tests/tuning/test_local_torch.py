"""The real thing on the CPU: workers with torch, measured, compared, and out of memory."""

from __future__ import annotations

import importlib.util
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpudoctor.errors import WorkloadError
from gpudoctor.model.tuning import OK, OUT_OF_MEMORY, UNSUPPORTED, Numerics, Settings, Trial
from gpudoctor.tuning.executor import Effort
from gpudoctor.tuning.local import LocalExecutor, Target, Timeouts
from tests.environments import python_of

pytestmark = pytest.mark.environments

REPOSITORY = Path(__file__).resolve().parents[2]
LONG = ("test_comparing_with_torch.py",)
"""Tests of the workers that take long: a test of their own, so that they can run beside the others."""
PYTEST_PACKAGES = (
    "pytest",
    "_pytest",
    "py",
    "pluggy",
    "iniconfig",
    "packaging",
    "pygments",
    "exceptiongroup",
    "tomli",
    "typing_extensions",
)
"""What pytest consists of; the last three on Python 3.10 only."""

MIB = 2**20
EFFORT = Effort(warmup_steps=2, steps=3, limit_seconds=1.0)
MLP_WEIGHTS = 1024 * 2048 + 2 * 2048 * 2048 + 2048 * 1000
MLP_FLOPS = 2 * (3 * MLP_WEIGHTS - 1024 * 2048)  # forward, two gradients, none of the input


@pytest.fixture(scope="module")
def mlp() -> Iterator[LocalExecutor]:
    """Return an executor of the workload mlp that may use 1 GiB."""
    target = Target(workload="mlp", device="cpu", memory_limit_bytes=1024 * MIB)
    with LocalExecutor(str(python_of("torch-cpu")), target) as executor:
        yield executor


@pytest.mark.parametrize("part", [*LONG, "others"])
def test_the_tests_of_the_workers_pass_with_torch(part: str, tmp_path: Path) -> None:
    """They are skipped in an environment without torch; pytest is lent to the one that has it."""
    python = python_of("torch-cpu")
    for name in PYTEST_PACKAGES:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.origin is not None:
            file = Path(spec.origin)
            place = file.parent if file.name == "__init__.py" else file
            (tmp_path / place.name).symlink_to(place)
    files = sorted(REPOSITORY.glob("tests/tuning/workers/test_*.py"))
    files.append(REPOSITORY / "tests" / "benchmarks" / "test_tuning_real.py")
    chosen = [file for file in files if (file.name == part if part in LONG else file.name not in LONG)]
    done = subprocess.run(
        [str(python), "-m", "pytest", *map(str, chosen), "-q", "-rs", "-p", "no:cacheprovider"],
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=1800,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert "could not import 'torch'" not in done.stdout


def test_mlp_is_measured(mlp: LocalExecutor) -> None:
    measurement = mlp.measure(Trial(precision="fp32", batch_size=8), EFFORT)
    assert (measurement.status, measurement.detail) == (OK, "")
    assert measurement.throughput
    assert measurement.flops_per_step == 8 * MLP_FLOPS
    if measurement.peak_memory_bytes is not None:
        assert 1.1 * measurement.peak_memory_bytes > 4 * 4 * MLP_WEIGHTS  # weights, gradients, two moments
        assert measurement.peak_memory_bytes < 1024 * MIB


def test_memory_that_is_full_is_an_outcome(mlp: LocalExecutor) -> None:
    too_large = mlp.measure(Trial(precision="fp32", batch_size=2**19), EFFORT)  # 2 GiB of features
    assert too_large.status == OUT_OF_MEMORY
    assert "DefaultCPUAllocator" in too_large.detail
    assert mlp.measure(Trial(precision="fp32", batch_size=8), EFFORT).status == OK


def test_the_ceilings_of_the_host(mlp: LocalExecutor) -> None:
    ceiling, bandwidth = mlp.ceiling("fp32"), mlp.bandwidth()
    assert ceiling.measured_tflops
    assert bandwidth.measured_gb_s
    assert bandwidth.datasheet_gb_s is None


def test_channels_last_of_a_model_without_images(mlp: LocalExecutor) -> None:
    trial = Trial(precision="fp32", batch_size=8, settings=Settings(channels_last=True))
    measurement = mlp.measure(trial, EFFORT)
    assert measurement.status == UNSUPPORTED
    assert "no four-dimensional weights" in measurement.detail


def test_bf16_is_compared_with_float64(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "import torch\n"
        "class Training:\n"
        "    def __init__(self, device, precision):\n"
        "        self.model = torch.nn.Linear(16, 4)\n"
        "        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)\n"
        "        self.precision = precision\n"
        "    def make_batch(self, size):\n"
        "        return torch.randn(size, 16), torch.randint(4, (size,))\n"
        "    def step(self, batch):\n"
        "        inputs, labels = batch\n"
        "        with self.precision.autocast():\n"
        "            loss = torch.nn.functional.cross_entropy(self.model(inputs), labels)\n"
        "        self.precision.backward(loss, self.optimizer)\n"
        "        return loss\n"
    )
    target = Target(workload=f"{tmp_path / 'train.py'}:Training", device="cpu")
    with LocalExecutor(str(python_of("torch-cpu")), target) as executor:
        numerics = executor.compare("bf16")
        assert executor.measure(Trial(precision="bf16", batch_size=8), EFFORT).status == OK
    assert isinstance(numerics, Numerics), numerics
    assert numerics.passed, numerics
    assert numerics.relative_error is not None
    assert 1e-4 < numerics.relative_error < 1e-1


def test_the_loading_of_a_data_set(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "import torch\n"
        "class Training:\n"
        "    dataset = torch.utils.data.TensorDataset(torch.randn(64, 4))\n"
        "    def __init__(self, device, precision):\n"
        "        self.model = torch.nn.Linear(4, 2)\n"
        "    def make_batch(self, size):\n"
        "        return torch.randn(size, 4)\n"
        "    def step(self, batch):\n"
        "        return self.model(batch)\n"
    )
    target = Target(workload=f"{tmp_path / 'train.py'}:Training", device="cpu")
    timeouts = Timeouts(comparison=1.0)
    with LocalExecutor(str(python_of("torch-cpu")), target, timeouts=timeouts) as executor:
        assert executor.describe_workload("fp32").dataset_size == 64
        assert executor.measure(Trial(precision="fp32", batch_size=16), EFFORT).status == OK
        loading = executor.loading(16)
        assert executor.transfers() == ()
    assert loading[0].workers == 0
    assert loading[0].samples_per_second > 0
    assert loading[0].wait_fraction is not None


def test_a_shape_that_does_not_fit_is_the_users_bug(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "import torch\n"
        "class Training:\n"
        "    def __init__(self, device, precision):\n"
        "        self.model = torch.nn.Linear(4, 2)\n"
        "    def make_batch(self, size):\n"
        "        return torch.randn(size, 5)\n"
        "    def step(self, batch):\n"
        "        return self.model(batch)\n"
    )
    target = Target(workload=f"{tmp_path / 'train.py'}:Training", device="cpu")
    with (
        LocalExecutor(str(python_of("torch-cpu")), target) as executor,
        pytest.raises(WorkloadError, match="mat1 and mat2 shapes cannot be multiplied") as caught,
    ):
        executor.measure(Trial(precision="fp32", batch_size=8), EFFORT)
    assert "return self.model(batch)" in caught.value.traceback
    assert "measuring.py" not in caught.value.traceback
