"""The pretended GPU itself: what a real CPU torch answers on it, asked in one process for each machine."""

from __future__ import annotations

import json
import os
import subprocess
import textwrap
from typing import Any

import pytest

from tests.conftest import Install
from tests.environments import python_of
from tests.pretended_gpu import MIB, Fault, Gpu, Machine, pretend

pytestmark = pytest.mark.environments

TWO = Machine(
    gpus=(
        Gpu(memory_bytes=512 * MIB),
        Gpu(name="NVIDIA A100-SXM4-40GB MIG 1g.5gb", uuid="MIG-0a-1b", capability=(7, 5), memory_bytes=256 * MIB),
    ),
    context_bytes=8 * MIB,
    kernel_seconds=0.003,
    pageable_gb_s=0.02,
    pinned_gb_s=1.0,
    faults=(Fault(operator="aten::cos", dtype="float16", message="no kernel for Half", call=2),),
)

QUESTIONS = """
import json, os, pathlib, time, warnings
import torch
answers, MIB = {}, 2**20

def failure(function):
    try:
        return function()
    except Exception as error:
        return f"{type(error).__module__}.{type(error).__name__}: {error}"

cuda = torch.device("cuda")
answers["build"] = [torch.__version__, torch.version.cuda, torch.backends.cudnn.version(), torch.cuda.get_arch_list()]
answers["devices"] = [[p.name, [p.major, p.minor], p.uuid] for p in map(torch.cuda.get_device_properties, range(2))]
answers["where"] = [str(torch.ones(2, device=name).device) for name in ("cuda", "cuda:1")]
answers["mixed"] = failure(lambda: torch.ones(2, device="cuda") + torch.ones(2))
answers["numpy"] = failure(lambda: torch.ones(2, device="cuda").numpy())

left, right = torch.randn(64, 64), torch.randn(64, 64)
exact = left.double() @ right.double()
def product_error(index, allowed):
    torch.backends.cuda.matmul.allow_tf32 = allowed
    product = (left.to(f"cuda:{index}") @ right.to(f"cuda:{index}")).cpu().double()
    return float((product - exact).norm() / exact.norm())
answers["products"] = [product_error(0, False), product_error(0, True), product_error(1, True)]

torch.backends.cuda.matmul.allow_tf32 = False
torch.manual_seed(1)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
inputs, goals = torch.randn(16, 4), torch.randn(16, 1)
def trained(device):
    twin = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
    twin.load_state_dict(model.state_dict())
    optimizer = torch.optim.AdamW(twin.parameters(), lr=0.01)  # before the model moves, as many programs do
    twin.to(device)
    for _ in range(3):
        optimizer.zero_grad()
        loss = (twin(inputs.to(device)) - goals.to(device)).square().mean()
        loss.backward()
        optimizer.step()
    return loss.item()
answers["losses"] = [trained("cpu"), trained("cuda:0"), trained("cuda:1")]
sequence = torch.nn.LSTM(4, 6, batch_first=True)
expected = sequence(inputs[None])[0].detach()
answers["lstm"] = (sequence.cuda()(inputs[None].cuda())[0].cpu() - expected).abs().max().item()

scaler = torch.amp.GradScaler("cuda", init_scale=2.0**20, growth_interval=1)
weight = torch.nn.Parameter(torch.ones(4, 1, device=cuda))
optimizer = torch.optim.SGD([weight], lr=0.1)
scales, types = [], []
for _ in range(3):
    with torch.autocast("cuda", dtype=torch.float16):
        output = inputs.to(cuda) @ weight
    types.append(str(output.dtype))
    optimizer.zero_grad()
    scaler.scale(output.float().sum() * 1e34).backward()
    scaler.step(optimizer)
    scaler.update()
    scales.append(scaler.get_scale())
answers["autocast"] = [types, scales, weight.detach().cpu().flatten().tolist()]

torch.cuda.empty_cache()
torch.cuda.reset_peak_memory_stats()
before = torch.cuda.memory_allocated()
block = torch.empty(64 * MIB, dtype=torch.uint8, device=cuda)
view = block[:5]
del block
held = torch.cuda.memory_allocated() - before
del view
answers["memory"] = [held, torch.cuda.memory_allocated() - before, torch.cuda.max_memory_allocated() - before]
torch.cuda.empty_cache()
answers["out of memory"] = failure(lambda: torch.empty(600 * MIB, dtype=torch.uint8, device=cuda))
free = torch.cuda.mem_get_info()[0]
others = pathlib.Path(os.environ["PRETENDED_GPU"], "used", "0", "1")
others.write_text(str(100 * MIB))
answers["others"] = free - torch.cuda.mem_get_info()[0]
others.unlink()
torch.cuda.set_per_process_memory_fraction(0.5)
answers["limited"] = failure(lambda: torch.empty(300 * MIB, dtype=torch.uint8, device=cuda))[:40]
torch.empty(240 * MIB, dtype=torch.uint8, device=cuda)
kept = [torch.empty(20 * MIB, dtype=torch.uint8, device=cuda) for _ in range(10)]
del kept[::2]
answers["fragments"] = failure(lambda: torch.empty(60 * MIB, dtype=torch.uint8, device=cuda).numel())
del kept

start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
torch.cuda.synchronize()
small = torch.ones(2, device=cuda)
started = time.perf_counter()
start.record()
for _ in range(40):
    small.add_(1)
end.record()
launched = time.perf_counter() - started
answers["not ready"] = failure(lambda: start.elapsed_time(end))
torch.cuda.synchronize()
answers["clock"] = [launched, time.perf_counter() - started, start.elapsed_time(end) / 1000]

pageable = torch.zeros(MIB)
pinned = pageable.pin_memory()
answers["pinned"] = [pageable.is_pinned(), pinned.is_pinned()]
def host_seconds(source):
    torch.cuda.synchronize()
    started = time.perf_counter()
    source.to(cuda, non_blocking=True)
    return time.perf_counter() - started
answers["copies"] = [host_seconds(pageable), host_seconds(pinned)]
torch.cuda.set_sync_debug_mode("warn")
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    small.sum()
    quiet = len(caught)
    small.sum().item()
answers["synchronising"] = [quiet, [str(warning.message) for warning in caught]]
torch.cuda.set_sync_debug_mode("default")

half = torch.ones(2, device=cuda, dtype=torch.float16)
answers["faults"] = [failure(lambda: str((kind + 0).cos().dtype)) for kind in (half, half, half.float())]
row = torch.ones(4, device=cuda)[torch.tensor([9], device=cuda)]
answers["poisoned"] = [failure(torch.cuda.synchronize)[:60], failure(torch.cuda.empty_cache)[:60]]
print(json.dumps(answers))
"""


def ask(questions: str, environ: dict[str, str]) -> Any:
    """Return what a program prints, which is JSON."""
    done = subprocess.run(
        [str(python_of("torch-cpu")), "-c", textwrap.dedent(questions)],
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory, driver_stand_in: Install) -> dict[str, Any]:
    """Return what a program finds on the machine TWO."""
    found: dict[str, Any] = ask(QUESTIONS, pretend(tmp_path_factory.mktemp("two"), TWO, driver_stand_in))
    return found


def test_a_build_and_its_devices(answers: dict[str, Any]) -> None:
    version, cuda, cudnn, architectures = answers["build"]
    assert (version, cuda, cudnn) == ("2.13.0+cu130", "13.0", 91002)
    assert "sm_80" in architectures
    assert answers["devices"] == [
        ["NVIDIA A100-SXM4-40GB", [8, 0], "00000000-0000-0000-0000-000000000000"],
        ["NVIDIA A100-SXM4-40GB MIG 1g.5gb", [7, 5], "0a-1b"],
    ]


def test_tensors_are_where_they_are(answers: dict[str, Any]) -> None:
    assert answers["where"] == ["cuda:0", "cuda:1"]
    assert "two devices, cuda:0 and cpu" in answers["mixed"]
    assert answers["numpy"].startswith("builtins.TypeError")


def test_products_round_to_tf32_where_it_is_allowed_and_the_device_has_it(answers: dict[str, Any]) -> None:
    strict, rounded, older = answers["products"]
    assert strict < 1e-6
    assert older < 1e-6
    assert 1e-4 < rounded < 1e-3


def test_training_does_what_it_does_on_the_cpu(answers: dict[str, Any]) -> None:
    host, *devices = answers["losses"]
    assert devices == pytest.approx([host, host], rel=1e-5)
    assert answers["lstm"] < 1e-6


def test_autocast_and_gradient_scaling(answers: dict[str, Any]) -> None:
    types, scales, weights = answers["autocast"]
    assert types == ["torch.float16"] * 3
    assert scales == [2.0**19, 2.0**18, 2.0**17]  # gradients that are not finite
    assert weights == [1.0] * 4  # so no step was taken


def test_memory_lives_as_long_as_a_view_of_it(answers: dict[str, Any]) -> None:
    assert answers["memory"] == [64 * MIB, 0, 64 * MIB]


def test_memory_runs_out(answers: dict[str, Any]) -> None:
    assert answers["out of memory"].startswith(
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 600.00 MiB"
    )
    assert "total capacity of 512.00 MiB" in answers["out of memory"]
    assert answers["limited"].startswith("torch.OutOfMemoryError")
    assert answers["others"] == 100 * MIB


def test_memory_fragments(answers: dict[str, Any]) -> None:
    """Of 240 MiB in one piece 140 are free, but no 60 of them are together."""
    assert answers["fragments"].startswith("torch.OutOfMemoryError")


def test_the_device_has_a_clock_of_its_own(answers: dict[str, Any]) -> None:
    launched, waited, timed = answers["clock"]
    work = 0.12 - 1e-6  # 40 kernels of 3 ms each; a difference of two readings of the clock is not exact
    assert launched < timed
    assert waited >= work
    assert work <= timed < waited + 0.01
    assert answers["not ready"] == "builtins.RuntimeError: CUDA error: device not ready"


def test_only_a_copy_from_pinned_memory_does_not_wait(answers: dict[str, Any]) -> None:
    assert answers["pinned"] == [False, True]
    pageable, pinned = answers["copies"]
    assert pageable > 4 * MIB / 0.02e9
    assert pinned < pageable / 2


def test_what_synchronises_is_reported(answers: dict[str, Any]) -> None:
    assert answers["synchronising"] == [0, ["called a synchronizing CUDA operation"]]


def test_a_fault_begins_with_its_call_and_has_its_type(answers: dict[str, Any]) -> None:
    assert answers["faults"] == ["torch.float16", "builtins.RuntimeError: no kernel for Half", "torch.float32"]


def test_an_assertion_of_the_device_poisons_the_context(answers: dict[str, Any]) -> None:
    assert all(text.startswith("torch.AcceleratorError: CUDA error: device-side") for text in answers["poisoned"])
