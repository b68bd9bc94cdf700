"""Inference with a workload whose step trains."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gpudoctor.errors import UsageError
from gpudoctor.tuning.workers.catalog import describe, load_factory
from gpudoctor.tuning.workers.precision import Precision

TRAINING = """
class Model:
    def __init__(self):
        self.training = True
    def train(self):
        self.training = True
    def eval(self):
        self.training = False
    def __call__(self, *inputs, **named):
        return ("model", self.training, inputs, named)

class Work:
    def __init__(self, device, precision):
        self.model, self.precision = Model(), precision
    def make_batch(self, size):
        return [0] * size, "labels"
    def step(self, batch):
        raise AssertionError("trains")

class Predicting(Work):
    def predict(self, batch):
        return "predicted", batch

class Bare(Work):
    def __init__(self, device, precision):
        self.model = None
"""


def step(tmp_path: Path, name: str, batch: Any, mode: str = "inference") -> Any:
    file = tmp_path / "train.py"
    file.write_text(TRAINING)
    return load_factory(f"{file}:{name}", mode)("cpu", Precision("complex64")).step(batch)


@pytest.mark.parametrize(
    ("batch", "inputs", "named"),
    [
        pytest.param(([1, 2], "labels"), ([1, 2],), {}, id="inputs and labels"),
        pytest.param("inputs", ("inputs",), {}, id="inputs alone"),
        pytest.param({"ids": [1], "labels": [2]}, (), {"ids": [1]}, id="by name"),
    ],
)
def test_a_model_is_called_with_the_inputs_in_evaluation_mode(
    tmp_path: Path, batch: Any, inputs: tuple[Any, ...], named: dict[str, Any]
) -> None:
    assert step(tmp_path, "Work", batch) == ("model", False, inputs, named)


def test_its_own_way_to_predict_comes_first(tmp_path: Path) -> None:
    assert step(tmp_path, "Predicting", [1]) == ("predicted", [1])


def test_without_a_model_there_is_no_inference(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"^--mode inference: .*train.py:Bare needs a method predict\(batch\)"):
        step(tmp_path, "Bare", [1])


def test_training_is_left_as_it_is(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="trains"):
        step(tmp_path, "Work", [1], mode="training")


def test_the_mode_of_the_users_own_is_reported() -> None:
    assert (describe("train.py:Work", "inference").mode, describe("train.py:Work").mode) == ("inference", "")


def test_torch_keeps_no_gradients(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    file = tmp_path / "network.py"
    file.write_text(
        "import torch\n"
        "class Work:\n"
        "    def __init__(self, device, precision):\n"
        "        self.model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Dropout(0.9))\n"
        "    def make_batch(self, size):\n"
        "        return torch.randn(size, 2), torch.zeros(size)\n"
        "    def step(self, batch):\n"
        "        raise AssertionError\n"
    )
    workload: Any = load_factory(f"{file}:Work", "inference")("cpu", Precision("fp32"))
    batch = workload.make_batch(3)
    outputs = workload.step(batch)
    assert not outputs.requires_grad
    assert torch.equal(outputs, workload.step(batch)), "dropout is off"
