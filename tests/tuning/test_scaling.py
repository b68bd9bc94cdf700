"""Several devices of one machine."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from gpudoctor.model.tuning import Recommendation, Scaling, Settings, TunedDevice, TunedWorkload, Tuning
from gpudoctor.processes import WorkerSilent
from gpudoctor.tuning import scaling
from gpudoctor.tuning.local import Target
from gpudoctor.tuning.scaling import measure_scaling, scaling_of
from gpudoctor.tuning.workers.launch import _reason
from tests.environments import python_of

TARGET = Target(workload="mlp", device="cpu")


def tuning(batch_size: int = 32, largest: int | None = 100) -> Tuning:
    advice = Recommendation(
        precision="fp32",
        batch_size=batch_size,
        max_batch_size=largest,
        settings=Settings(),
        throughput=100.0,
        unit="samples/s",
        why=(),
    )
    device, workload = TunedDevice(kind="cpu", threads=5), TunedWorkload(name="mlp")
    return Tuning(device=device, workload=workload, elapsed_seconds=1.0, measurements=(), recommendation=advice)


def test_efficiency_is_of_as_many_times_one_process() -> None:
    found = scaling_of(4, {32: 100.0, 64: 110.0}, {32: 300.0, 64: 303.0, 128: 400.0})
    assert [(point.batch_size, point.efficiency) for point in found.points] == [
        (32, 0.75),
        (64, pytest.approx(303 / 440)),
    ]
    assert found.batch_size == 32, "the smallest as fast as the best"
    assert scaling_of(2, {}, {32: 100.0}).batch_size is None


class Launched:
    """A worker that answers, or fails, and keeps what it was asked."""

    asked: list[Mapping[str, Any]]
    fails = False

    def __init__(self, module: str, interpreter: str) -> None:
        assert (module, interpreter) == ("gpudoctor.tuning.workers.launch", sys.executable)

    def ask(self, order: Mapping[str, Any], seconds: float) -> dict[str, Any]:
        self.asked.append({**order, "within": seconds})
        if self.fails:
            raise WorkerSilent(seconds)
        return {"rates": [[size, 100.0 * order["processes"] ** 0.5] for size in order["batch_sizes"]], "problem": ""}

    def end(self) -> None:
        self.asked.append({"processes": "ended"})


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> type[Launched]:
    Launched.asked, Launched.fails = [], False
    monkeypatch.setattr(scaling, "Worker", Launched)
    return Launched


@pytest.mark.parametrize(
    ("batch_size", "largest", "sizes"),
    [(32, 100, [16, 32, 64]), (32, 63, [16, 32]), (32, None, [16, 32]), (1, 2, [1, 2])],
)
def test_one_process_is_compared_with_all(
    batch_size: int, largest: int | None, sizes: list[int], launched: type[Launched]
) -> None:
    found = measure_scaling(sys.executable, TARGET, tuning(batch_size, largest), 4, 20.0)
    assert [order["processes"] for order in launched.asked] == [1, "ended", 4, "ended"]
    first = launched.asked[0]
    assert (first["batch_sizes"], first["threads"], first["within"], first["seconds"]) == (sizes, 1, 10.0, 1.0)
    assert found is not None
    assert {point.efficiency for point in found.points} == {0.5}


def test_processes_that_do_not_answer_are_a_problem(launched: type[Launched]) -> None:
    launched.fails = True
    found = measure_scaling(sys.executable, TARGET, tuning(), 2, 20.0)
    assert found == Scaling(processes=2, problem="no answer in 10 s, so the process was killed")
    assert launched.asked[-1] == {"processes": "ended"}


def test_nothing_recommended_is_nothing_to_scale(launched: type[Launched]) -> None:
    nothing = Tuning(
        device=TunedDevice(kind="cpu"), workload=TunedWorkload(name="mlp"), elapsed_seconds=1.0, measurements=()
    )
    assert measure_scaling(sys.executable, TARGET, nothing, 2, 20.0) is None
    assert launched.asked == []


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param(
            "[rank0]: Traceback (most recent call last):\n[rank0]: torch.OutOfMemoryError: CUDA out of memory.\n"
            "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \nRoot Cause\n",
            "OutOfMemoryError: CUDA out of memory.",
            id="of a process",
        ),
        pytest.param("No module named torch.distributed.run\n", "No module named torch.distributed.run", id="no torch"),
        pytest.param("", "the processes gave no reason", id="nothing"),
    ],
)
def test_the_first_error_of_a_process_is_the_reason(text: str, reason: str) -> None:
    assert _reason(text) == reason


WORK = """
import torch

class Work:
    def __init__(self, device, precision):
        self.precision = precision
        self.model = torch.nn.Linear(8, 1)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
    def make_batch(self, size):
        return torch.randn(size, 8)
    def step(self, batch):
        loss = self.model(batch).square().mean()
        self.precision.backward(loss, self.optimizer)
        return loss

class Apart(Work):
    def __init__(self, device, precision):
        super().__init__(device, precision)
        self.hidden = self.model
    def step(self, batch):
        return self.hidden(batch).sum()
"""


@pytest.mark.environments
def test_two_processes_train_together_on_the_cpu(tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    file.write_text(WORK)
    target = Target(workload=f"{file}:Work", device="cpu")
    found = measure_scaling(str(python_of("torch-cpu")), target, tuning(4, None), 2, 240.0)
    assert found is not None
    assert (found.problem, [point.batch_size for point in found.points]) == ("", [2, 4])
    assert all(point.together > 0 < point.alone for point in found.points)
    apart = measure_scaling(str(python_of("torch-cpu")), Target(workload=f"{file}:Apart"), tuning(4, None), 2, 240.0)
    assert apart is not None
    assert apart.problem == "UsageError: the step does not call the workload's attribute model"
