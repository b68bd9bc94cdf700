"""Which calls the hook counts as waiting for the GPU."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import Install
from tests.pretended_gpu import Machine, pretend
from tests.watching.test_inside import watched

pytestmark = pytest.mark.environments
PROGRAM = """
import json, sys, torch
recorder = sys.modules["_gpudoctor_hook"].recorders[0]
model = torch.nn.Linear(8, 8).to("cuda")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
found = {}
for line in json.loads(sys.argv[1]):
    counted, waited = recorder.counted, recorder.counts.get("synchronising", 0)
    recorder.places.clear()
    for _ in range(20):
        data = torch.randn(64, 8)
        inputs = data.to("cuda", non_blocking=True)
        losses = model(inputs).square().mean(1)
        losses.mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        big = losses.detach() > 0.5
        exec(compile(line, "train.py", "exec"))
    each = (recorder.counts.get("synchronising", 0) - waited) / (recorder.counted - counted)
    found[line] = [each, *{call.split()[1] for call, _, place in recorder.places if place == 1}]
print(json.dumps(found))
"""
WAITING = {
    "losses.sum().item()": "item",
    "if big.any(): pass": "__bool__",
    "f'{losses[0]:.3f}'": "__format__",
    "0.5 in losses": "__contains__",
    "big.nonzero()": "nonzero",
    "torch.nonzero(big, as_tuple=True)": "torch.nonzero",
    "torch.argwhere(big)": "torch.argwhere",
    "losses.unique()": "unique",
    "torch.unique(losses)": "torch.unique",
    "losses.masked_select(big)": "masked_select",
    "losses[big]": "__getitem__",
    "inputs[:, 0][big]": "__getitem__",
    "inputs[big, 0]": "__getitem__",
    "inputs[big] = torch.ones(int(8), device='cuda')": "__setitem__",
    "torch.equal(big, big)": "torch.equal",
}
AT_ONCE = (
    "inputs[big] = 0.0",
    "losses[3:4], losses[None], losses[..., 3]",
    "losses[torch.ones(1, dtype=torch.long, device='cuda')]",
    "losses * big, torch.where(big, losses, 0.0)",
    "data[data > 0], data.unique(), torch.nonzero(data), data.equal(data), 0.5 in data, torch.unique(input=data)",
    "data[data > 0] = torch.ones(int((data > 0).sum()))",
    "assert data.sum() != data.sum().item() + 1, f'{data[0, 0]:.3f}'",
)


def test_calls_that_wait_for_the_gpu(driver_stand_in: Install, tmp_path: Path) -> None:
    machine = pretend(tmp_path / "machine", Machine(), driver_stand_in)
    lines = json.dumps(["pass", *WAITING, *AT_ONCE])
    done, _ = watched(tmp_path, machine, "-c", PROGRAM, lines)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert {line: call for line, (each, *call) in found.items() if each > 0.8} == {
        line: [call] for line, call in WAITING.items()
    }
    assert all(found[line][0] < 0.2 for line in AT_ONCE), found
