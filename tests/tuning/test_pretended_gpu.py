"""The tuner's workers on GPUs that are pretended: real torch, real trials, and whatever can go wrong on a device."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gpudoctor.errors import GpudoctorError, UsageError, WorkloadError
from gpudoctor.model.codec import from_json, to_json
from gpudoctor.model.tuning import OK, OUT_OF_MEMORY, UNSUPPORTED, Measurement, Settings, Trial
from gpudoctor.processes import Worker
from gpudoctor.profiles.export import export
from gpudoctor.profiles.from_tuning import profile_of
from gpudoctor.tuning.executor import Effort
from gpudoctor.tuning.local import LocalExecutor, Target, Timeouts
from gpudoctor.tuning.tuner import tune
from gpudoctor.tuning.tuning_run import Request
from gpudoctor.tuning.workers.failures import WORKLOAD
from tests.conftest import Install
from tests.environments import python_of
from tests.pretended_gpu import MIB, Fault, Gpu, Machine, pretend, take_memory

pytestmark = pytest.mark.environments

EFFORT = Effort(warmup_steps=2, steps=4, limit_seconds=0.3)
SMALL = Gpu(memory_bytes=256 * MIB)
MIG = Gpu(name="NVIDIA A100-SXM4-40GB MIG 1g.5gb", uuid="MIG-0a1b2c3d-0000", memory_bytes=128 * MIB)

WORK = """
import pathlib
import torch

PLAN = pathlib.Path(__file__).with_name("plan")

def take(place):
    \"\"\"Ask for more than the device has if the plan says so.\"\"\"
    if PLAN.read_text() == place:
        torch.empty(2**30, dtype=torch.uint8, device="cuda")

class Late(torch.autograd.Function):
    @staticmethod
    def forward(context, value):
        return value.clone()
    @staticmethod
    def backward(context, gradient):
        take("backward")
        return gradient

class Work:
    def __init__(self, device, precision):
        self.device, self.precision, self.steps = device, precision, 0
        take("build")
        self.model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1)).to(device)
        if PLAN.read_text() == "optimizer":  # with gradient and two moments four times 80 MiB
            self.model.wide = torch.nn.Parameter(torch.ones(80 * 2**18, device=device))
        self.optimizer = torch.optim.AdamW(self.model.parameters())

    def make_batch(self, size):
        take("batch")
        return torch.randn(size, 8, device=self.device)

    def step(self, batch):
        self.steps += 1
        take("forward")
        with self.precision.autocast():
            output = Late.apply(self.model(batch))
        loss = output.float().square().mean()
        if hasattr(self.model, "wide"):
            loss = loss + self.model.wide.mean()
        if self.steps > 5:
            take("later")
        if PLAN.read_text() == "bug":
            raise ValueError("not a number of classes")
        if PLAN.read_text() == "grows":
            size = 130 + 4 * (self.steps % 25)
            torch.empty(size * 2**20, dtype=torch.uint8, device=self.device)
        if PLAN.read_text() in ("full", "not full"):
            size = 246 if PLAN.read_text() == "full" else 100
            held = torch.empty(size * 2**20, dtype=torch.uint8, device=self.device)
            raise RuntimeError("cuDNN error: CUDNN_STATUS_NOT_SUPPORTED")
        self.precision.backward(loss, self.optimizer)
        return loss
"""


class Bench:
    """A worker of a workload, asked as LocalExecutor asks it, but not ended when a trial fails."""

    def __init__(self, folder: Path, environ: dict[str, str], device: str = "cuda:0") -> None:
        self.folder = folder
        (folder / "train.py").write_text(WORK)
        self._plan("")
        import pynvml

        target = Target(workload=f"{folder / 'train.py'}:Work", device=device, memory_fraction=1.0)
        order = {**vars(target), "arrays": False, "usable_bytes": None, "pynvml": pynvml.__file__}
        self.worker = Worker("gpudoctor.tuning.workers.serve", str(python_of("torch-cpu")), {**os.environ, **environ})
        self.worker.send({**order, "parent": os.getpid()})

    def _plan(self, text: str) -> None:
        (self.folder / "plan").write_text(text)

    def ask(self, kind: str, **request: Any) -> Any:
        """Return the answer to a request."""
        return self.worker.ask({"ask": kind, **request}, 300)

    def measure(self, plan: str = "", precision: str = "fp32", size: int = 4, **settings: Any) -> Any:
        """Return the answer to a trial."""
        self._plan(plan)
        trial = Trial(precision=precision, batch_size=size, settings=Settings(**settings))
        return self.ask("measure", trial=to_json(trial), effort=to_json(EFFORT))


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory, driver_stand_in: Install) -> Iterator[Bench]:
    """Return the bench on a small GPU."""
    folder = tmp_path_factory.mktemp("small")
    bench = Bench(folder, pretend(folder, Machine(gpus=(SMALL,)), driver_stand_in))
    yield bench
    bench.worker.end()


@pytest.mark.parametrize("place", ["build", "batch", "forward", "backward", "optimizer", "later"])
def test_out_of_memory_is_an_outcome_wherever_it_happens(bench: Bench, place: str) -> None:
    bench.ask("release")
    failure = bench.measure(place)["failure"]
    assert failure["kind"] == OUT_OF_MEMORY
    assert failure["detail"].startswith("OutOfMemoryError: CUDA out of memory. Tried to allocate")
    measured = from_json(Measurement, bench.measure()["value"])
    assert measured.status == OK
    assert (measured.peak_memory_bytes or 0) < MIB  # nothing of the failed trial is left


def test_every_figure_of_a_trial_is_measured(bench: Bench) -> None:
    for precision in ("fp32", "tf32", "bf16", "fp16"):
        measured = from_json(Measurement, bench.measure(precision=precision)["value"])
        assert measured.status == OK
        assert len(measured.step_seconds) >= 3
        assert measured.flops_per_step
        resident, peak = measured.resident_memory_bytes or 0, measured.peak_memory_bytes or 0
        assert 0 < resident < peak <= (measured.reserved_memory_bytes or 0)
        assert measured.conditions.clock_mhz == 210


def test_a_cache_that_is_emptied_again_and_again_is_a_warning(bench: Bench) -> None:
    bench.ask("release")
    measured = from_json(Measurement, bench.measure("grows")["value"])
    assert measured.allocation_retries > 1
    assert any("the allocator emptied its cache" in warning for warning in measured.warnings)


def test_a_library_that_gets_no_workspace_is_out_of_memory_if_memory_is_full(bench: Bench) -> None:
    assert bench.measure("full")["failure"]["kind"] == OUT_OF_MEMORY
    assert bench.measure("not full")["failure"]["kind"] == UNSUPPORTED


def test_another_process_takes_the_memory(bench: Bench) -> None:
    take_memory(bench.folder, 0, 255 * MIB)
    bench.ask("release")
    try:
        assert bench.measure()["failure"]["kind"] == OUT_OF_MEMORY
    finally:
        take_memory(bench.folder, 0, 0)
    assert "value" in bench.measure()


def test_a_mistake_in_every_precision_is_the_users(bench: Bench) -> None:
    failure = bench.measure("bug", precision="fp16")["failure"]
    assert (failure["kind"], failure["detail"]) == (WORKLOAD, "ValueError: not a number of classes")
    assert "in step" in failure["traceback"]


def test_torch_compile_without_a_compiler_is_refused(bench: Bench) -> None:
    failure = bench.measure(compile=True)["failure"]
    assert failure["kind"] == UNSUPPORTED
    assert failure["detail"].startswith("BackendCompilerFailed: backend='inductor' raised: RuntimeError: ")
    assert not failure["poisons"]
    assert bench.measure()["value"]["status"] == OK


def test_rates_of_the_device(bench: Bench) -> None:
    assert bench.ask("ceiling", precision="bf16")["value"] > 0
    assert bench.ask("bandwidth")["value"] > 0
    found = bench.ask("transfers", precision="fp32", batch_size=64)["value"]
    assert [(item["pinned"], item["non_blocking"]) for item in found] == [
        (False, False),
        (False, True),
        (True, False),
        (True, True),
    ]


def executor_of(
    folder: Path, environ: dict[str, str], device: str = "auto", workload: str = "", timeouts: Timeouts | None = None
) -> LocalExecutor:
    """Return an executor of the workload, or of another one that is written to a file."""
    (folder / "train.py").write_text(workload or WORK)
    (folder / "plan").write_text("")
    target = Target(workload=f"{folder / 'train.py'}:Work", device=device)
    return LocalExecutor(str(python_of("torch-cpu")), target, environ={**os.environ, **environ}, timeouts=timeouts)


def test_the_second_gpu_is_a_part_of_one(tmp_path: Path, driver_stand_in: Install) -> None:
    """A trial on it takes its memory, and no other; NVML knows it by its UUID."""
    environ = pretend(tmp_path, Machine(gpus=(SMALL, MIG)), driver_stand_in)
    with executor_of(tmp_path, environ, "cuda:1") as executor:
        device = executor.describe()
        measured = executor.measure(Trial(precision="fp32", batch_size=4), EFFORT)
        used = {index: sum(int(file.read_text()) for file in used_of(tmp_path, index)) for index in (0, 1)}
    assert (device.kind, device.index, device.name) == ("cuda", 1, MIG.name)
    assert (device.memory_total_bytes, device.driver_version) == (MIG.memory_bytes, "580.95.05")
    assert (measured.status, measured.conditions.temperature_celsius) == (OK, 34)
    assert used[0] == 0
    assert used[1] > 0
    with (
        executor_of(tmp_path, environ, "cuda:2") as executor,
        pytest.raises(UsageError, match="has cuda:0, cuda:1, cpu"),
    ):
        executor.describe()


def used_of(folder: Path, index: int) -> list[Path]:
    """Return the files in which the processes say what they have of a GPU."""
    return list((folder / "used" / str(index)).glob("*"))


FRAGMENTS = """
import torch

class Work:
    def __init__(self, device, precision):
        self.model = torch.nn.Linear(4, 4).to(device)
        torch.empty(180 * 2**20, dtype=torch.uint8, device=device)
        self.pieces = [torch.empty(20 * 2**20, dtype=torch.uint8, device=device) for _ in range(8)]
        del self.pieces[::2]
    def make_batch(self, size):
        return torch.randn(size, 4, device=self.model.weight.device)
    def step(self, batch):
        torch.empty(100 * 2**20, dtype=torch.uint8, device=batch.device)
        return self.model(batch)
"""


def test_fragments_are_out_of_memory_unless_segments_expand(tmp_path: Path, driver_stand_in: Install) -> None:
    environ = pretend(tmp_path, Machine(gpus=(SMALL,)), driver_stand_in)
    with executor_of(tmp_path, environ, workload=FRAGMENTS) as executor:
        found = [
            executor.measure(Trial(precision="fp32", batch_size=4, settings=Settings(allocator=allocator)), EFFORT)
            for allocator in ("", "expandable_segments:True")
        ]
    assert [measured.status for measured in found] == [OUT_OF_MEMORY, OK]
    assert "Tried to allocate 100.00 MiB" in found[0].detail


ASSERTION = """
import torch

class Work:
    def __init__(self, device, precision):
        self.table = torch.zeros(4, device=device)
    def make_batch(self, size):
        return torch.full((size,), size, device=self.table.device)
    def step(self, batch):
        return self.table[batch] * 2
"""


def test_an_error_that_poisons_the_context_ends_the_worker(tmp_path: Path, driver_stand_in: Install) -> None:
    """An assertion is the user's; an illegal address is the trial's, and the next trial has a new worker."""
    fault = Fault(operator="aten::mul", message="an illegal memory access was encountered", call=3, sticky=True)
    environ = pretend(tmp_path, Machine(gpus=(SMALL,), faults=(fault,)), driver_stand_in)
    with executor_of(tmp_path, environ, workload=ASSERTION) as executor:
        illegal = executor.measure(Trial(precision="fp32", batch_size=1), EFFORT)
        with pytest.raises(WorkloadError, match="device-side assert"):
            executor.measure(Trial(precision="fp32", batch_size=8), EFFORT)
    assert illegal.status == UNSUPPORTED
    assert "an illegal memory access was encountered" in illegal.detail


def test_an_assertion_in_one_precision_is_its_result(tmp_path: Path, driver_stand_in: Install) -> None:
    """It poisons the process, so that another one has to find out that the step works in fp32."""
    fault = Fault(operator="aten::addmm", dtype="float16", message="device-side assert triggered", sticky=True)
    environ = pretend(tmp_path, Machine(gpus=(SMALL,), faults=(fault,)), driver_stand_in)
    with executor_of(tmp_path, environ) as executor:
        measured = executor.measure(Trial(precision="fp16", batch_size=4), EFFORT)
    assert measured.status == UNSUPPORTED
    assert measured.detail.startswith("the step works in fp32, not in fp16: AcceleratorError: CUDA error: device-side")


NOWHERE = """
import torch

class Work:
    def __init__(self, device, precision):
        self.model = torch.nn.Linear(4, 4)
    def make_batch(self, size):
        return torch.randn(size, 4)
    def step(self, batch):
        return self.model(batch)
"""


def test_a_workload_that_leaves_the_device_alone_is_a_mistake(tmp_path: Path, driver_stand_in: Install) -> None:
    environ = pretend(tmp_path, Machine(gpus=(SMALL,)), driver_stand_in)
    with (
        executor_of(tmp_path, environ, workload=NOWHERE) as executor,
        pytest.raises(UsageError, match="uses no memory of cuda:0, its first argument"),
    ):
        executor.measure(Trial(precision="fp32", batch_size=4), EFFORT)


TRAINING = """
import torch

class Work:
    dataset = torch.utils.data.TensorDataset(torch.randn(64, 3, 4, 4))
    def __init__(self, device, precision):
        self.device, self.precision = device, precision
        layers = (torch.nn.Conv2d(3, 8, 3), torch.nn.Flatten(), torch.nn.Linear(32, 16), torch.nn.Tanh())
        self.model = torch.nn.Sequential(*layers, torch.nn.Linear(16, 1)).to(device)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)
    def make_batch(self, size):
        return torch.randn(size, 3, 4, 4, device=self.device)
    def step(self, batch):
        with self.precision.autocast():
            loss = self.model(batch).float().square().mean()
        self.precision.backward(loss, self.optimizer)
        return loss
"""


def test_a_precision_without_one_operator_is_left_out_of_a_whole_tuning(
    tmp_path: Path, driver_stand_in: Install
) -> None:
    """Of four GPUs the last one is visible, and it is its number that goes into a profile."""
    fault = Fault(operator="aten::tanh", dtype="float16", message="this GPU cannot do that")
    machine = Machine(gpus=(SMALL,) * 4, faults=(fault,))
    environ = {**pretend(tmp_path, machine, driver_stand_in), "CUDA_VISIBLE_DEVICES": "3"}
    request = Request(precisions=("fp32", "fp16", "fp8"), budget_seconds=90.0, largest_batch=2)
    timeouts = Timeouts(comparison=2.0, budget=90.0)
    with executor_of(tmp_path, environ, workload=TRAINING, timeouts=timeouts) as executor:
        tuning = tune(executor, request)
    assert (tuning.device.index, tuning.device.visible) == (0, "3")
    assert "gpu_ids: '3'" in export(profile_of(tuning), "accelerate")
    left_out = {m.precision: m for m in tuning.measurements if m.status == UNSUPPORTED}
    assert left_out["fp16"].detail == "the step works in fp32, not in fp16: RuntimeError: this GPU cannot do that"
    assert "fp8" in left_out
    assert tuning.recommendation is not None
    assert tuning.recommendation.precision == "fp32"
    assert [item.precision for item in tuning.ceilings] == ["fp32"]
    switches = {switch.name: switch for switch in tuning.switches}
    assert not switches["compile"].kept
    assert switches["compile"].measurement.status == UNSUPPORTED
    assert switches["allocator"].measurement.status == OK
    assert tuning.bandwidth is not None
    assert len(tuning.transfers) == 4
    assert tuning.loading[0].workers == 0
    assert tuning.recommendation.settings.data_on_device is True


def test_a_device_that_another_process_has_for_itself(tmp_path: Path, driver_stand_in: Install) -> None:
    with (
        executor_of(tmp_path, pretend(tmp_path, Machine(busy=True), driver_stand_in)) as executor,
        pytest.raises(GpudoctorError, match=r"device auto cannot be used: .*CUDA-capable devices are busy"),
    ):
        executor.describe()
