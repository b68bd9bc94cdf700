"""Operators and kernels of single steps, counted by PyTorch's own profilers."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gpudoctor.watching.hook.closer_look import kernels_in, operators_in
from tests.conftest import Install
from tests.pretended_gpu import Machine, pretend
from tests.watching.test_inside import watched


def event(kind: str, name: str = "") -> Any:
    return SimpleNamespace(kind=lambda: kind, name=lambda: name)


@pytest.mark.parametrize(
    ("names", "count"),
    [
        pytest.param("(aten::mm)", 1, id="one"),
        pytest.param("(aten::linear (aten::t (aten::transpose (aten::as_strided))) (aten::addmm))", 1, id="in another"),
        pytest.param("(aten::mean (aten::sum) (aten::div_))", 2, id="two in another"),
        pytest.param("(aten::empty)(aten::view)(aten::item (aten::_local_scalar_dense))", 0, id="without a kernel"),
        pytest.param("(autograd::engine::evaluate_function: MmBackward0 (MmBackward0 (aten::mm)))", 1, id="backward"),
        pytest.param("(torch::autograd::AccumulateGrad (aten::detach (detach)))", 0, id="no operator"),
        pytest.param(")(torchvision::nms)(aten::mm", 1, id="of a library, cut at both ends"),
    ],
)
def test_operators(names: str, count: int) -> None:
    parts = names.replace("(", "\n(").replace(")", "\n)").split("\n")
    events = [
        event("pop") if part.strip() == ")" else event("push", part.strip("( ")) for part in parts if part.strip()
    ]
    assert len(operators_in([event("mark"), *events])) == count


def kernel(name: str, begin: int, end: int, device: str = "cuda", *, is_annotation: bool = False) -> Any:
    times = {"start_ns": lambda: begin, "duration_ns": lambda: end - begin}
    return SimpleNamespace(
        name=lambda: name, device_type=lambda: device, is_user_annotation=lambda: is_annotation, **times
    )


def test_kernels_that_overlap_are_busy_once() -> None:
    events = [
        kernel("gemm", 5_000_000, 7_000_000),
        kernel("relu", 0, 2_000_000),
        kernel("add", 1_000_000, 3_000_000),
        kernel("mul", 1_500_000, 2_500_000),
        kernel("Memcpy HtoD", 10_000_000, 20_000_000),
        kernel("cudaLaunchKernel", 10_000_000, 20_000_000, "cpu"),
        kernel("Optimizer.step#SGD.step", 0, 20_000_000, is_annotation=True),
    ]
    assert kernels_in(events, "cuda") == {"kernels": 4, "gpu_busy_ms": 5.0}
    assert kernels_in(events[4:], "cuda") == {}


EARLY = """
import sys, torch
look = sys.modules["_gpudoctor_hook"].recorders[0].look
classes = sys.modules["_gpudoctor_hook.closer_look"]
look._looks = [({operators}, classes.Operators), ({kernels}, classes.Kernels)]
torch.manual_seed(0)
device = sys.argv[1]
model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 8)).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, foreach=False)
def step(number):
    model(torch.ones(2, 8, device=device)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""
STEPS = "for number in range(60): step(number)\nprint(float(model[0].weight.sum()), torch.rand(1))\n"


@pytest.mark.environments
def test_operators_and_kernels_of_a_program(driver_stand_in: Install, tmp_path: Path) -> None:
    machine = pretend(tmp_path / "machine", Machine(kernel_seconds=0.0001), driver_stand_in)
    done, report = watched(tmp_path, machine, "-c", EARLY.format(operators=0, kernels=0) + STEPS, "cuda")
    assert done.returncode == 0, done.stderr
    steps = report["steps"]
    assert steps["counted"] == 59 - 5 - 3  # two looks, and one at the graph of the loss
    assert 10 <= steps["kernels"] <= 20
    assert 10 <= steps["operators"] <= 20
    assert steps["gpu_busy_ms"] >= steps["kernels"] * 0.1
    without, _ = watched(tmp_path, machine, "-c", EARLY.format(operators=2**62, kernels=2**62) + STEPS, "cuda")
    assert (without.stdout, without.stderr) == (done.stdout, done.stderr)


PROFILED = """
def profiled(number):
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        step(number)
    assert any(event.key == "aten::addmm" for event in profile.key_averages())
for number in range(60):
    (profiled if number % 20 == 10 else step)(number)
"""
FORKED = """
import os
def work():
    for _ in range(5):
        step(0)
    assert not torch.autograd._profiler_enabled()
    os._exit(0)
for number in range(60):
    step(number)
    if 5 < number < 12:
        pid = os.fork()
        if not pid:
            work()
        assert os.waitpid(pid, 0)[1] == 0
"""
SLOW = """
import time
for number in range(60):
    step(number)
    if 5 < number < 30:
        time.sleep(0.1 if number % 2 else 0)
        torch.ones(1).to("cpu")
"""


@pytest.mark.environments
@pytest.mark.parametrize(
    ("program", "is_counted"),
    [
        pytest.param(PROFILED, True, id="profiles itself later"),
        pytest.param(FORKED, False, id="forks"),
        pytest.param(SLOW, True, id="has slow steps"),
    ],
)
def test_a_program_that_is_in_the_way(program: str, is_counted: bool, tmp_path: Path) -> None:
    done, report = watched(tmp_path, {}, "-c", EARLY.format(operators=0, kernels=0) + program, "cpu")
    assert done.returncode == 0, done.stderr
    assert ("operators" in report["steps"], "kernels" in report["steps"]) == (is_counted, False)


LINES = """
big = torch.nn.Linear(64, 64).to(device)
class Many(torch.nn.Module):
    def forward(self, inputs):
        for _ in range(30):
            inputs = inputs * 0.999  # MANY
        return big(inputs)  # PRODUCTS
model, optimizer = Many(), torch.optim.SGD(big.parameters(), lr=0.1, foreach=False)
for number in range(40):
    model(torch.ones(256, 64, device=device)).sum().backward()
    optimizer.step()
"""


@pytest.mark.environments
def test_the_lines_of_operators_and_of_products(tmp_path: Path) -> None:
    """Neither the backward pass, which has as many operators, nor the optimizer is the line to change."""
    program = EARLY.format(operators=0, kernels=2**62) + LINES
    done, report = watched(tmp_path, {}, "-c", program, "cpu")
    assert done.returncode == 0, done.stderr
    lines = {line.rpartition("# ")[2]: number for number, line in enumerate(program.splitlines(), 1) if "# " in line}
    steps = report["steps"]
    assert steps["operators_place"] == f"<string>:{lines['MANY']}"
    assert steps["products_place"] == f"<string>:{lines['PRODUCTS']}"
