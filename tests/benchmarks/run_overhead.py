"""What the hook of `gpudoctor run` adds to a step: the same training with and without it, in turns.

    python tests/benchmarks/run_overhead.py --python .venv/bin/python --rounds 10

--python has PyTorch. Each round starts a process with the hook and one without, for a step of about 2 ms (an MLP) and
one of about 20 ms (a transformer), on the CPU in one thread. Each step reads its loss, sends its batch and clones a
tensor, and the hook is told that the GPU is a stand-in, so that it counts all of that as it does on a GPU. The limits
are 2 % of a 20 ms step and 10 % of a 2 ms one. Of each process the quietest of ten parts counts.
On a busy machine the CPU time says more than the time on the clock.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median

from gpudoctor.watching.inside import Inside

PROGRAM = """
import json, statistics, sys, time, torch
from torch.utils.data import DataLoader, TensorDataset
torch.set_num_threads(1)
torch.manual_seed(0)
kind, steps = sys.argv[1], int(sys.argv[2])
if kind == "2 ms":
    model = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 256), torch.nn.ReLU(),
                                torch.nn.Linear(256, 256))
    data = torch.randn(64 * steps, 256)
else:
    layer = torch.nn.TransformerEncoderLayer(128, 4, 256, batch_first=True)
    model = torch.nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
    data = torch.randn(8 * steps, 32, 128)
optimizer = torch.optim.AdamW(model.parameters())
for recorder in getattr(sys.modules.get("_gpudoctor_hook"), "recorders", ()):
    recorder.stand_in = True
clock, used, at = [], [], None
for (batch,) in DataLoader(TensorDataset(data), batch_size=len(data) // steps):
    batch = batch.to("cpu")
    loss = model(batch).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    kept = loss.detach().clone()
    loss.item()
    now = time.perf_counter(), time.process_time()
    if at is not None:
        clock.append(now[0] - at[0])
        used.append(now[1] - at[1])
    at = now
size = len(clock) // 12
def quietest(values):
    return min(statistics.median(values[begin : begin + size]) for begin in range(2 * size, len(values) - size, size))
print(json.dumps([quietest(clock), quietest(used)]))
"""
STEPS = {"2 ms": 1500, "20 ms": 300}
LIMITS = {"2 ms": 0.10, "20 ms": 0.02}


def measure(python: str, kind: str, *, hook: bool) -> tuple[float, float]:
    """Return the step of one process in seconds, on the clock and of CPU time: the median of its quietest part."""
    inside = Inside(os.environ)
    try:
        variables = inside.variables if hook else {}
        command = [python, "-c", PROGRAM, kind, str(STEPS[kind])]
        done = subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True, check=True)
        if hook and not any(seen["counted"] for seen in inside.read()):
            raise SystemExit("the hook saw no step")
    finally:
        inside.remove()
    clock, used = json.loads(done.stdout)
    return clock, used


def main() -> None:
    """Print, for each step, its duration without the hook, what the hook adds, and the spread over the rounds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--output", type=Path, help="write every value as JSON")
    options = parser.parse_args()
    values: dict[str, list[list[tuple[float, float]]]] = {}
    for kind in STEPS:
        pairs = []
        for number in range(options.rounds):
            order = (False, True) if number % 2 == 0 else (True, False)
            found = {hook: measure(options.python, kind, hook=hook) for hook in order}
            pairs.append([found[False], found[True]])
        values[kind] = pairs
        for place, name in enumerate(("clock", "CPU time")):
            ratios = sorted(with_hook[place] / without[place] - 1 for without, with_hook in pairs)
            base = median(without[place] for without, _ in pairs)
            low, high = ratios[len(ratios) // 4], ratios[-1 - len(ratios) // 4]
            verdict = "below" if median(ratios) < LIMITS[kind] else "ABOVE"
            print(
                f"{kind:>5} step, {name:<8}: {base * 1e3:6.2f} ms, hook {median(ratios):+.1%} "
                f"(half of the rounds {low:+.1%} to {high:+.1%}), {verdict} the limit of {LIMITS[kind]:.0%}"
            )
    if options.output:
        options.output.write_text(json.dumps(values))


if __name__ == "__main__":
    main()
