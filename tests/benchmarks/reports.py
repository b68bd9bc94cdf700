"""How long the diagnosis of a pasted report of about 20 kB takes, as a whole process.

    python tests/benchmarks/reports.py [--python PATH] [--runs N]

Three reports: one text of each kind that is read, repeated up to 20 kB; what a person pastes who was asked for
everything; and that with the words of an issue. The median and the minimum of the runs of each are printed.
"""

from __future__ import annotations

import argparse
import itertools
import os
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
PACKAGES = 400
TOLD = """### Describe the bug
I updated my system last week, and since then training does not use the GPU any more. Before the update everything was
fine: the same script with the same data ran in ten minutes per epoch, and now it takes hours. nvidia-smi works and
shows the card, but torch.cuda.is_available() returns False.
"""
TRIED = """What I have tried so far: I removed the virtual environment, created a new one, installed the wheel again and
rebooted twice. The machine of my colleague has the same distribution, and there it works with the older kernel. I can
provide more logs if needed, thanks for any help.
"""

ENVIRON = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def every_kind() -> str:
    """Return the report with a text of every kind."""
    pieces: list[str] = []
    for text in itertools.cycle(pasted.ALL.values()):
        pieces.append(text)
        if sum(map(len, pieces)) >= SIZE:
            return "\n".join(pieces)
    raise AssertionError("there are texts")


def usual() -> str:
    """Return the report of a person: `collect_env`, `nvidia-smi`, a traceback and a long `pip list`."""
    packages = "".join(f"some-package-{n:<11} 1.{n}.0\n" for n in range(PACKAGES))
    return "\n".join((pasted.COLLECT_ENV, pasted.NVIDIA_SMI, pasted.TRACEBACK, pasted.PIP_LIST.rstrip(), packages))


def issue() -> str:
    """Return the usual report with a person's words before and after it."""
    return "\n".join((TOLD, usual(), TRIED * 6))[:SIZE]


def seconds(command: list[str]) -> float:
    """Return the wall time of one run."""
    before = time.perf_counter()
    done = subprocess.run(command, capture_output=True, check=False, cwd=tempfile.gettempdir(), env=ENVIRON)
    assert done.returncode in (0, 1), done.stderr
    return time.perf_counter() - before


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--runs", type=int, default=15)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for report in (every_kind, usual, issue):
            path = Path(folder, "report.txt")
            path.write_text(report(), encoding="utf-8")
            command = [options.python, "-m", "gpudoctor", "check", "--from", str(path)]
            times = [seconds(command) for _ in range(options.runs + 1)][1:]
            milliseconds = [round(1000 * value) for value in (statistics.median(times), min(times), GOAL_SECONDS)]
            size = path.stat().st_size / 1000
            print(
                "{}, {:.0f} kB: median {} ms, minimum {} ms (goal {} ms)".format(report.__name__, size, *milliseconds)
            )


if __name__ == "__main__":
    main()
