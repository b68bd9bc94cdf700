"""Programs with one fault each, run for real: the finding, its line, and nothing about a program without a fault."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Install
from tests.environments import python_of
from tests.pretended_gpu import MIB, Gpu, Machine, pretend

pytestmark = pytest.mark.environments

ROOT = Path(__file__).parent.parent.parent
TRAINING = Path(__file__).with_name("training.py")
STEPS = "40"
MARKS = {
    "input-bound": "INPUT",
    "transfer-bound": "TRANSFER",
    "synchronises-each-step": "SYNCHRONISE",
    "tensors-cloned-each-step": "CLONE",
}


@pytest.fixture
def machine(driver_stand_in: Install, tmp_path: Path) -> dict[str, str]:
    """Return the environment of a machine with one pretended GPU."""
    return pretend(tmp_path / "machine", Machine(), driver_stand_in)


def environment(variables: dict[str, str]) -> dict[str, str]:
    path = os.pathsep.join(filter(None, (variables.get("PYTHONPATH"), str(ROOT))))
    return {**os.environ, **variables, "PYTHONPATH": path, "NO_COLOR": "1", "OMP_NUM_THREADS": "1"}


def watched(
    folder: Path, variables: dict[str, str], *command: str, options: tuple[str, ...] = ()
) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    """Run a Python program of the environment with torch under gpudoctor run; return how it ended, and the report."""
    report = folder / "run.json"
    run = [sys.executable, "-m", "gpudoctor", "run", "--format", "json", "--output", str(report), *options, "--"]
    done = subprocess.run(
        [*run, str(python_of("torch-cpu")), *command],
        cwd=folder,
        env=environment(variables),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return done, json.loads(report.read_text())


@cache
def line_of(mark: str) -> int:
    lines = TRAINING.read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if line.endswith(f"# {mark}"))


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        ("healthy", []),
        ("tf32-healthy", []),
        ("input-bound", ["input-bound"]),
        ("transfer-bound", ["transfer-bound"]),
        ("synchronises-each-step", ["synchronises-each-step"]),
        ("tensors-cloned-each-step", ["tensors-cloned-each-step"]),
        ("launch-bound", ["launch-bound"]),
        ("amp-not-used", ["amp-not-used", "tf32-not-used"]),
        ("gpu-never-used", ["gpu-never-used"]),
    ],
)
def test_a_program_with_one_fault(fault: str, expected: list[str], machine: dict[str, str], tmp_path: Path) -> None:
    done, report = watched(tmp_path, machine, str(TRAINING), fault, STEPS)
    assert done.returncode == 0, done.stderr
    assert [finding["check"] for finding in report["findings"]] == expected
    if fault in MARKS:
        assert report["findings"][0]["place"] == f"{TRAINING}:{line_of(MARKS[fault])}"
    assert report["steps"]["counted"] >= 30
    assert report["inside"] == ""


def test_a_gpu_with_little_to_do(driver_stand_in: Install, tmp_path: Path) -> None:
    idle = pretend(tmp_path / "machine", Machine(gpus=(Gpu(facts={"utilization": 30}),)), driver_stand_in)
    done, report = watched(tmp_path, idle, str(TRAINING), "healthy", STEPS, options=("--every", "0.2"))
    assert done.returncode == 0, done.stderr
    assert [finding["check"] for finding in report["findings"]] == ["batch-could-grow"]


@pytest.mark.parametrize("fault", ["memory-nearly-full", "memory-fragmented"])
def test_a_program_that_fills_a_small_gpu(fault: str, driver_stand_in: Install, tmp_path: Path) -> None:
    small = pretend(tmp_path / "machine", Machine(gpus=(Gpu(memory_bytes=512 * MIB),)), driver_stand_in)
    done, report = watched(tmp_path, small, str(TRAINING), fault, STEPS)
    assert done.returncode == 0, done.stderr
    assert [finding["check"] for finding in report["findings"]] == [fault]


@pytest.mark.parametrize(("fault", "expected"), [("recompiles-each-step", ["recompiles-each-step"]), ("compiled", [])])
def test_compilation(fault: str, expected: list[str], tmp_path: Path) -> None:
    """On a machine without a GPU: the pretended one compiles nothing."""
    done, report = watched(tmp_path, {}, str(TRAINING), fault, STEPS, "cpu")
    assert done.returncode == 0, done.stderr
    assert [finding["check"] for finding in report["findings"]] == expected
    assert report["steps"]["compiling_place"] == f"{TRAINING}:{line_of('COMPILED')}"


INFERENCE = """
import sys, time, torch
model = torch.nn.Linear(64, 8).to(sys.argv[1])
inputs, end = torch.ones(4, 64, device=sys.argv[1]), time.time() + 3
while time.time() < end:
    with torch.inference_mode():
        model(inputs)
"""


@pytest.mark.parametrize(("device", "expected"), [("cuda", []), ("cpu", ["gpu-never-used"])])
def test_a_loop_of_inference_has_no_steps(
    device: str, expected: list[str], driver_stand_in: Install, tmp_path: Path
) -> None:
    """NVML shows no use of the GPU; the inside saw whether anything was sent there."""
    idle = pretend(tmp_path / "machine", Machine(gpus=(Gpu(facts={"utilization": 0}),)), driver_stand_in)
    done, report = watched(tmp_path, idle, "-c", INFERENCE, device, options=("--every", "0.2"))
    assert done.returncode == 0, done.stderr
    assert [finding["check"] for finding in report["findings"]] == expected
    assert report["steps"] is None


def test_the_hook_changes_no_result_and_no_random_number(machine: dict[str, str], tmp_path: Path) -> None:
    arguments = (str(TRAINING), "tensors-cloned-each-step", STEPS, "-v")
    without, report = watched(tmp_path, machine, *arguments, options=("--no-hook",))
    assert (report["steps"], report["inside"]) == (None, "--no-hook")
    assert watched(tmp_path, machine, *arguments)[0].stdout == without.stdout != ""


USER = "import os; os.environ['USERS_OWN'] = 'ran'"
SHOW = "import os, sys; print(os.environ.get('USERS_OWN'), [p for p in sys.path if 'gpudoctor-run' in p]); sys.exit(3)"


def test_the_users_own_sitecustomize_runs(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "sitecustomize.py").write_text(USER)
    done, _ = watched(tmp_path, {"PYTHONPATH": str(tmp_path / "own")}, "-c", SHOW)
    assert (done.returncode, done.stdout) == (3, "ran []\n")


def test_an_interpreter_without_the_hook(tmp_path: Path) -> None:
    done, report = watched(tmp_path, {}, "-I", "-c", "print(1)")
    assert (done.returncode, done.stdout) == (0, "1\n")
    assert "no Python process loaded the hook" in report["inside"]


SHELL = "import subprocess, sys; sys.exit(subprocess.call(['sh', '-c', ' '.join(sys.argv[1:])]))"
KILL = """
import os, runpy, signal, sys, threading
import torch  # takes longer than the program on a busy machine
sys.argv = [{path!r}, "healthy", "20000", "cpu"]
threading.Timer(8, os.kill, (os.getpid(), signal.SIGKILL)).start()
runpy.run_path({path!r}, run_name="__main__")
"""


def test_a_program_started_by_a_shell(machine: dict[str, str], tmp_path: Path) -> None:
    shell = f"{python_of('torch-cpu')} {TRAINING} input-bound 30"
    done, report = watched(tmp_path, machine, "-c", SHELL, shell)
    assert done.returncode == 0, done.stderr
    assert report["findings"][0]["check"] == "input-bound"
    assert [process["program"] for process in report["processes"]] == ["training.py"]


def test_a_program_that_is_killed_leaves_its_steps(tmp_path: Path) -> None:
    done, report = watched(tmp_path, {}, "-c", KILL.format(path=str(TRAINING)))
    assert done.returncode == 128 + 9
    assert report["steps"]["counted"] >= 20


TWO_RANKS = """
import os, subprocess, sys
ranks = [subprocess.Popen([sys.executable, *sys.argv[1:]], env={**os.environ, "RANK": str(rank)}) for rank in (0, 1)]
sys.exit(max(rank.wait() for rank in ranks))
"""


def test_each_rank_is_attributed(tmp_path: Path) -> None:
    done, report = watched(tmp_path, {}, "-c", TWO_RANKS, str(TRAINING), "healthy", STEPS, "cpu")
    assert done.returncode == 0, done.stderr
    assert sorted(process["RANK"] for process in report["processes"]) == [0, 1]


TORCHRUN = """
import torch
from torch.utils.data import DataLoader, TensorDataset
def main():
    torch.distributed.init_process_group("gloo")
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 8))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for (inputs,) in DataLoader(TensorDataset(torch.ones(160, 8)), batch_size=2, num_workers=1):
        optimizer.zero_grad()
        model(inputs).sum().backward()
        optimizer.step()
    torch.distributed.destroy_process_group()
if __name__ == "__main__":
    main()
"""


def test_ranks_of_torchrun_with_workers(tmp_path: Path) -> None:
    (tmp_path / "ranks.py").write_text(TORCHRUN)
    launch = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "ranks.py")
    done, report = watched(tmp_path, {}, *launch)
    assert done.returncode == 0, done.stderr
    assert sorted((each["RANK"], each["steps"]) for each in report["processes"]) == [(0, 79), (1, 79)]
    assert {each["program"] for each in report["processes"]} == {"ranks.py"}


CELL = """import time, torch
from torch.utils.data import DataLoader
class Slow(torch.utils.data.Dataset):
    def __len__(self): return 60
    def __getitem__(self, index):
        time.sleep(0.01)
        return torch.ones(4)
model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for inputs in DataLoader(Slow()):
    model(inputs).sum().backward()
    optimizer.step()
"""
KERNEL = """
import sys, types
class Compiler:
    _filename_map = {"/kernel/123.py": 3}
class Shell:
    compile = Compiler
sys.modules["IPython"] = types.ModuleType("IPython")
sys.modules["IPython"].get_ipython = lambda: Shell
exec(compile(sys.argv[1], "/kernel/123.py", "exec"), {"__name__": "__main__"})
"""


def test_a_place_in_a_notebook_is_a_cell(tmp_path: Path) -> None:
    done, report = watched(tmp_path, {}, "-c", KERNEL, CELL)
    assert done.returncode == 0, done.stderr
    assert [(each["check"], each["place"]) for each in report["findings"]] == [("input-bound", "cell 3, line 10")]


FORKED = """
import multiprocessing, torch
def train():
    model = torch.nn.Linear(4, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(40):
        model(torch.ones(2, 4)).sum().backward()
        optimizer.step()
process = multiprocessing.get_context("fork").Process(target=train)
process.start()
process.join()
raise SystemExit(process.exitcode)
"""


def test_a_process_that_was_forked(tmp_path: Path) -> None:
    done, report = watched(tmp_path, {}, "-c", FORKED)
    assert done.returncode == 0, done.stderr
    assert [process["steps"] for process in report["processes"]] == [39]


TWO_TRAININGS = """
import threading, torch
def train(steps):
    model = torch.nn.Linear(4, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        model(torch.ones(2, 4)).sum().backward()
        optimizer.step()
train(10)
train(100)
def stream():
    for _ in range(100):
        torch.ones(3).to("cpu").clone().sum().item()
thread = threading.Thread(target=stream)
thread.start()
train(30)
thread.join()
"""


def test_one_training_after_the_other(tmp_path: Path) -> None:
    done, report = watched(tmp_path, {}, "-c", TWO_TRAININGS)
    assert done.returncode == 0, done.stderr
    assert [process["steps"] for process in report["processes"]] == [9 + 90 - 1 + 20 - 1]
    assert report["findings"] == []


FULL_GRAPH = """
import torch
model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
@torch.compile(backend="eager", fullgraph=True)
def step(inputs):
    return model(inputs.clone()).to(torch.float64).sum()
for _ in range(30):
    step(torch.ones(2, 4)).backward()
    optimizer.step()
class Own(torch.Tensor):
    pass
assert torch.ones(3).as_subclass(Own).clone().sum().item() == 3
"""


def test_a_whole_graph_still_compiles(tmp_path: Path) -> None:
    done, report = watched(tmp_path, {}, "-c", FULL_GRAPH)
    assert done.returncode == 0, done.stderr
    assert (report["steps"]["counted"], report["findings"]) == (23, [])
