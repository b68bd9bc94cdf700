"""How long the diagnosis of a pasted report of 20 kB takes, as a whole process.

    python tests/benchmarks/reports.py [--python PATH] [--runs N]

The report holds one text of each kind that is read, repeated up to 20 kB. The median is printed with the goal.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.readers import pasted

GOAL_SECONDS = 0.3
SIZE = 20_000


def report() -> str:
    """Return the report."""
    pieces: list[str] = []
    for text in itertools.cycle(pasted.ALL.values()):
        pieces.append(text)
        if sum(map(len, pieces)) >= SIZE:
            return "\n".join(pieces)
    raise AssertionError("there are texts")


def seconds(command: list[str]) -> float:
    """Return the wall time of one run."""
    before = time.perf_counter()
    done = subprocess.run(command, capture_output=True, check=False, cwd=tempfile.gettempdir())
    assert done.returncode in (0, 1), done.stderr
    return time.perf_counter() - before


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--runs", type=int, default=15)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "report.txt")
        path.write_text(report(), encoding="utf-8")
        command = [options.python, "-m", "gpudoctor", "check", "--from", str(path)]
        times = [seconds(command) for _ in range(options.runs + 1)][1:]
    median = statistics.median(times)
    print(f"check --from, {SIZE / 1000:.0f} kB: {median * 1000:.0f} ms (goal {GOAL_SECONDS * 1000:.0f} ms)")


if __name__ == "__main__":
    main()
