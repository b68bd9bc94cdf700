"""What the hook of `gpudoctor run` adds to a step: blocks of steps with and without its patches, in one process.

    python tests/benchmarks/run_overhead.py --python .venv/bin/python --pairs 100

--python has PyTorch. The training is an MLP (a step of about 2 ms) or a transformer (about 20 ms), on the CPU in one
thread. Each step reads its loss, sends its batch and clones a tensor, and the hook is told that the GPU is a stand-in,
so that it counts all of that as it does on a GPU. A block has 16 steps, one of which looks for lines, and is compared
with the block next to it, so that whatever else the machine does meets both. The order changes with each pair. The
median of the pairs counts, with its 95 % interval. What the hook writes every two seconds is timed separately, added.
Counting the operators of one step, once, is timed separately too, and given in milliseconds: it is done after 2 s.
The limits are 2 % of a 20 ms step and 10 % of a 2 ms one.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Any

from gpudoctor.watching.inside import Inside

PROGRAM = """
import json, sys, time, torch
from torch.utils.data import DataLoader, TensorDataset
torch.set_num_threads(1)
torch.manual_seed(0)
kind, pairs, block = sys.argv[1], int(sys.argv[2]), 16
if kind == "2 ms":
    model = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 256), torch.nn.ReLU(),
                                torch.nn.Linear(256, 256))
    data = torch.randn(64 * 100, 256)
else:
    layer = torch.nn.TransformerEncoderLayer(128, 4, 256, batch_first=True)
    model = torch.nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
    data = torch.randn(8 * 100, 32, 128)
optimizer = torch.optim.AdamW(model.parameters())
hook = sys.modules["_gpudoctor_hook"]
recorder, patching = hook.recorders[0], hook.patchings[0]
recorder.stand_in = True
def batches():
    while True:
        yield from DataLoader(TensorDataset(data), batch_size=len(data) // 100)
def train(source, steps):
    for _ in range(steps):
        (batch,) = next(source)
        batch = batch.to("cpu")
        loss = model(batch).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        kept = loss.detach().clone()
        loss.item()
def measure(source, on):
    patching.switch(on=on)
    recorder.spoil_step()  # it began in an earlier block
    recorder._written = time.perf_counter_ns()
    train(source, 1)
    begun = time.perf_counter(), time.thread_time()
    train(source, block)
    return [(time.perf_counter() - begun[0]) / block, (time.thread_time() - begun[1]) / block]
source = batches()
train(source, 100)
found = []
for number in range(pairs):
    order = (False, True) if number % 2 == 0 else (True, False)
    both = {on: measure(source, on) for on in order}
    found.append([both[False], both[True]])
writes = []
for _ in range(20):
    begun = time.perf_counter(), time.thread_time()
    recorder.write(in_step=True)
    writes.append([time.perf_counter() - begun[0], time.thread_time() - begun[1]])
patching.switch(on=True)
looks = []
for _ in range(20):
    recorder.look._looks = [(0, sys.modules["_gpudoctor_hook.closer_look"].Operators)]
    recorder.look._first_ns = recorder.look_at_ns = 0
    begun = time.perf_counter(), time.thread_time()
    train(source, 3)  # it begins at the end of the first, and ends at the end of the second
    ended = time.perf_counter(), time.thread_time()
    train(source, 3)
    usual = time.perf_counter(), time.thread_time()
    looks.append([2 * middle - first - last for first, middle, last in zip(begun, ended, usual)])
print(json.dumps({"pairs": found, "writes": writes, "looks": looks, "counted": recorder.counted,
                  "operators": recorder.facts.get("operators")}))
"""
KINDS = {"2 ms": (0.10, 8), "20 ms": (0.02, 1)}
"""The limit for each step, and how many more pairs are needed than for the longest one."""

WRITE_EVERY = 2.0
NORMAL_95 = 1.96


def measure(python: str, kind: str, pairs: int) -> dict[str, Any]:
    """Return the seconds of a step without and with the patches, on the clock and of CPU time, in each pair."""
    inside = Inside(os.environ)
    try:
        command = [python, "-c", PROGRAM, kind, str(pairs)]
        environment = {**os.environ, **inside.variables}
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    finally:
        inside.remove()
    found: dict[str, Any] = json.loads(done.stdout)
    if not found["counted"]:
        raise SystemExit("the hook saw no step")
    return found


def interval(values: list[float]) -> tuple[float, float]:
    """Return the 95 % interval of the median, by the ranks of the values."""
    ordered, count = sorted(values), len(values)
    reach = NORMAL_95 * count**0.5 / 2
    return ordered[max(round(count / 2 - reach), 0)], ordered[min(round(count / 2 + reach), count - 1)]


def main() -> None:
    """Print, for each step, its duration without the hook and what the hook adds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--pairs", type=int, default=100, help="of blocks of 20 ms steps; eight times as many of 2 ms")
    parser.add_argument("--output", type=Path, help="write every value as JSON")
    options = parser.parse_args()
    values = {}
    for kind, (limit, more) in KINDS.items():
        found = values[kind] = measure(options.python, kind, options.pairs * more)
        for place, name in enumerate(("clock", "CPU time")):
            writing = median(write[place] for write in found["writes"]) / WRITE_EVERY
            ratios = [on[place] / off[place] - 1 + writing for off, on in found["pairs"]]
            base, (low, high) = median(off[place] for off, _ in found["pairs"]), interval(ratios)
            verdict = "below" if high < limit else ("ABOVE" if low > limit else "not shown to be below")
            print(
                f"{kind:>5} step, {name:<8}: {base * 1e3:6.2f} ms, hook {median(ratios):+.1%} "
                f"({low:+.1%} to {high:+.1%}; writing {writing:.2%}), {verdict} the limit of {limit:.0%}"
            )
        look = median(look[0] for look in found["looks"])
        print(f"{kind:>5} step, counting {found['operators']} operators once: {look * 1e3:.1f} ms")
    if options.output:
        options.output.write_text(json.dumps(values))


if __name__ == "__main__":
    main()
