"""How long a check takes beside what it cannot do without: a bare interpreter, `import torch`.

    python tests/benchmarks/startup.py [--python PATH] [--runs N]

Runs alternate, so that a machine that slows down slows both; the medians and their ratio are printed with the goal.
`--python` names an interpreter with gpudoctor and torch installed; without torch the first line is left out.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time

GOALS = (
    ("check", ["-m", "gpudoctor", "check"], "import torch", ["-c", "import torch"], 1.0),
    ("check --fast", ["-m", "gpudoctor", "check", "--fast"], "bare interpreter", ["-c", "pass"], 15.0),
    ("--help", ["-m", "gpudoctor", "--help"], "bare interpreter", ["-c", "pass"], 15.0),
)
ENVIRON = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def seconds(command: list[str], folder: str) -> float:
    """Return the wall time of one run in `folder`."""
    before = time.perf_counter()
    subprocess.run(command, capture_output=True, check=False, cwd=folder, env=ENVIRON)
    return time.perf_counter() - before


def compare(python: str, ours: list[str], other: list[str], runs: int) -> tuple[float, float]:
    """Return the median wall times of both commands, in seconds, over alternating runs after one warm-up each.

    They run in an empty folder, in which no project asks for anything, with modules compiled by the warm-up.
    """
    with tempfile.TemporaryDirectory() as folder:
        commands = ([python, *ours], [python, *other])
        pairs = [[seconds(command, folder) for command in commands] for _ in range(runs + 1)][1:]
    return statistics.median(pair[0] for pair in pairs), statistics.median(pair[1] for pair in pairs)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--runs", type=int, default=11)
    options = parser.parse_args()
    torch = subprocess.run([options.python, "-c", "import torch"], capture_output=True, check=False).returncode == 0
    for name, ours, other_name, other, goal in GOALS:
        if other_name == "import torch" and not torch:
            continue
        mine, theirs = compare(options.python, ours, other, options.runs)
        measured = f"{name}: {mine * 1000:.0f} ms, {other_name}: {theirs * 1000:.0f} ms"
        print(f"{measured}, ratio {mine / theirs:.2f} (goal {goal})")


if __name__ == "__main__":
    main()
