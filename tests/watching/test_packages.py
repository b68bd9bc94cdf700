"""Waits for the GPU inside an installed package: what it decides itself is no finding, what it reads is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import Install
from tests.pretended_gpu import Machine, pretend
from tests.watching.test_inside import watched

TRAINER = """
import torch
def fit(model, device, reads):
    optimizer = torch.optim.SGD(model.to(device).parameters(), lr=0.1)
    for step in range(40):
        loss = model(torch.ones(8, 8, device=device)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if torch.isnan(loss) or loss.detach()[None][loss[None] > 1e9].numel():
            raise ValueError
        if reads:
            loss.item()
"""
PROGRAM = """
import sys, torch
from transformers import fit
torch.manual_seed(0)
model = torch.nn.Linear(8, 8)
fit(model, "cuda", "reads" in sys.argv)
"""


@pytest.mark.environments
@pytest.mark.parametrize("reads", [True, False])
def test_a_package_that_trains(reads: bool, driver_stand_in: Install, tmp_path: Path) -> None:
    installed = tmp_path / "lib" / "site-packages" / "transformers"
    installed.mkdir(parents=True)
    (installed / "__init__.py").write_text(TRAINER)
    (tmp_path / "train.py").write_text(PROGRAM)
    machine = pretend(tmp_path / "machine", Machine(), driver_stand_in)
    variables = {**machine, "PYTHONPATH": f"{machine['PYTHONPATH']}:{installed.parent}"}
    done, report = watched(tmp_path, variables, "train.py", *(["reads"] if reads else []))
    assert done.returncode == 0, done.stderr
    assert report["steps"]["synchronising_share"] > 0
    found = [each for each in report["findings"] if each["check"] == "synchronises-each-step"]
    assert [each["place"] for each in found] == (["train.py:6"] if reads else [])
    assert all("in transformers" in each["summary"] for each in found)


CLOSURE = """
import torch
model = torch.nn.Linear(8, 8).to("cuda")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def passes():
    optimizer.zero_grad()
    loss = model(torch.ones(8, 8).to("cuda")).square().mean()
    loss.item()
    loss.backward()
    return loss
for step in range(40):
    optimizer.step(passes)
"""


@pytest.mark.environments
def test_an_optimizer_that_calls_the_passes(driver_stand_in: Install, tmp_path: Path) -> None:
    """As Lightning has it: what the program does in them is not the optimizer's."""
    (tmp_path / "train.py").write_text(CLOSURE)
    done, report = watched(tmp_path, pretend(tmp_path / "machine", Machine(), driver_stand_in), "train.py")
    assert done.returncode == 0, done.stderr
    steps = report["steps"]
    assert (steps["synchronisations"], steps["synchronising_place"]) == (1.0, "train.py:8")
    parts = [steps[f"{part}_share"] for part in ("forward", "backward", "optimizer")]
    assert all(part > 0.01 for part in parts)
    assert sum(parts) <= 1.0
