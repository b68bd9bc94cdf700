"""What else programs do with the functions that the hook replaces: the output is the same with and without it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.environments import python_of
from tests.watching.test_inside import environment, watched

TRAIN = """
import torch
model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def train():
    for _ in range(3):
        model(torch.ones(2, 4)).sum().backward()
        optimizer.step()
train()
"""
SCRIPTED = """
@torch.jit.script
def scripted(x: torch.Tensor, n: int):
    torch.autograd.backward([x.sum()])
    values, counts = torch.unique(x, return_counts=True)
    kept = x.detach().clone()
    kept[kept > 1] = 0.0
    found = torch.nonzero(x), torch.argwhere(x), torch.masked_select(x, x > 0), torch.unique_consecutive(x)
    return found, torch.equal(x, x), torch.allclose(x, x), values, counts, torch.tensor([n]), kept[kept > 0], kept.cpu()
print(scripted(torch.arange(3.0, requires_grad=True), 2))
"""
COMPILED = """
torch._dynamo.config.capture_dynamic_output_shape_ops = True
@torch.compile(backend="eager", fullgraph=True)
def compiled(x):
    mask = x > 0
    found = x[mask].sum() + torch.nonzero(mask).sum() + torch.unique(x).sum() + torch.masked_select(x, mask).sum()
    x = x.clone()
    x[mask] = 0.0
    return found + x.sum()
print(compiled(torch.arange(-3.0, 4.0)))
"""
TRACED = """
class Traced(torch.nn.Module):
    def forward(self, x):
        return torch.nonzero(x)[0] + torch.unique(x)[0] + x[0] + x.nonzero()[0] + x[x > 0][0]
traced = torch.fx.symbolic_trace(Traced())
print(traced.code, traced(torch.arange(1.0, 4.0)))
"""
SUBCLASS = """
class Own(torch.Tensor):
    calls = []
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        cls.calls.append(function.__name__)
        return super().__torch_function__(function, types, args, kwargs or {})
own = torch.arange(3.0).as_subclass(Own)
print(own[own > 0].sum().item(), torch.nonzero(own).shape, 2.0 in own, torch.unique(own), own[0], Own.calls)
assert torch.nonzero in torch.overrides.get_testing_overrides()
"""


@pytest.mark.environments
@pytest.mark.parametrize("more", [SCRIPTED, COMPILED, TRACED, SUBCLASS], ids=["script", "compile", "trace", "subclass"])
def test_the_output_is_the_same(more: str, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(TRAIN + more)  # TorchScript reads it
    command = [str(python_of("torch-cpu")), "program.py"]
    alone = subprocess.run(
        command, cwd=tmp_path, env=environment({}), capture_output=True, text=True, timeout=300, check=False
    )
    assert alone.returncode == 0, alone.stderr
    done, _ = watched(tmp_path, {}, "program.py")
    assert (done.returncode, done.stdout) == (0, alone.stdout), done.stderr
