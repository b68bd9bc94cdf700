"""Kill `gpudoctor fix` at random moments: afterwards the environment is as before, or as planned.

    python -m tests.benchmarks.fix_interruptions --kills 25 --installer pip --installer uv --seed 7

Each run starts a fix of PyTorch and of two CuPy packages at once, and kills gpudoctor with SIGKILL at a random moment
after it began to fetch, or to apply the change, by turns. Every second time everything that it started is killed too,
otherwise pip or uv goes on. The next gpudoctor finds what is left. Then every file is compared by content and mode.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from gpudoctor.worker import descendants, kill_all
from tests.fixing.beds import Bed, Env, make_bed, unpack_pip
from tests.stand_ins import RTX_4090, Cuda, Nvml, install

DRIVER = "580.65.06"
PACKAGES = ("torch==2.13.0+cpu", "torchvision==0.28.0+cpu", "tiny", "cupy-cuda12x", "cupy-cuda13x", "numpy==2.4.6")
FINDINGS = ("torch-cpu-build", "cupy-multiple-packages")
BEGINNINGS = ("Fetching the packages", "Applying the change")


def main() -> None:
    """Kill as often as asked, and print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=25, help="for each installer")
    parser.add_argument("--installer", action="append", choices=("pip", "uv"), help="repeatable; both by default")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    with tempfile.TemporaryDirectory(prefix="gpudoctor-kills-") as name:
        folder = Path(name)
        bed = machine(folder)
        for installer in options.installer or ("pip", "uv"):
            env = bed.environment(*PACKAGES, installer=installer, name=installer)
            counted = kill_often(env, options.kills, chance)
            print(f"{installer}: {', '.join(f'{count} {what}' for what, count in sorted(counted.items()))}", flush=True)


def machine(folder: Path) -> Bed:
    """Return a machine with a GPU and an index of tiny wheels."""
    nvml = Nvml(devices=(RTX_4090,), cuda_version=13000, driver_version=DRIVER)
    cuda = Cuda(devices=(RTX_4090,), version=13000, driver_version=DRIVER)
    return make_bed(folder, install(folder / "driver", nvml=nvml, cuda=cuda), unpack_pip(folder / "bundled"))


def kill_often(env: Env, kills: int, chance: random.Random) -> Counter[str]:
    """Return how often each outcome came."""
    before = env.state()
    seconds = {}
    for beginning in BEGINNINGS:
        seconds[beginning] = _fix(env, beginning, None)
        planned = env.state()
        _settle(env, "--undo")
        assert env.state() == before != planned
    counted: Counter[str] = Counter()
    for number in range(kills):
        beginning = BEGINNINGS[number // 2 % 2]
        _fix(env, beginning, chance.uniform(0, seconds[beginning]), alone=number % 2 == 0)
        counted["half changed when killed"] += _is_half(env, before, planned)
        _settle(env)
        state = env.state()
        outcome = "as before" if state == before else "as planned" if state == planned else "as neither"
        counted[outcome] += 1
        if outcome == "as neither":
            print(f"  {_differences(state, before)}", flush=True)
        if state != before:
            _settle(env, "--undo")
            assert env.state() == before
    return counted


def _is_half(env: Env, *states: Mapping[str, str]) -> bool:
    try:
        return env.state() not in states
    except FileNotFoundError:  # pip or uv goes on
        return True


def _fix(env: Env, beginning: str, kill_after: float | None, alone: bool = False) -> float:
    """Fix, and kill it so many seconds after that line. Return how long it took from there to its end."""
    command = [sys.executable, "-m", "gpudoctor", "fix", *FINDINGS, "--yes", "--fast", "--python", env.python]
    with subprocess.Popen(
        command, env=dict(env.bed.variables), cwd=env.bed.folder, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if beginning in line.decode():
                break
        began = time.monotonic()
        if kill_after is not None:
            time.sleep(kill_after)
            children = [] if alone else descendants(process.pid)
            os.kill(process.pid, signal.SIGKILL)
            kill_all(children)
        else:
            process.stderr.read()
        process.wait()
        assert kill_after is not None or process.returncode == 0, process.returncode
        return time.monotonic() - began


def _settle(env: Env, *arguments: str) -> None:
    """Let the next gpudoctor undo what was interrupted. It has nothing else to fix."""
    done = env.gpudoctor("fix", *(arguments or ("pynvml-deprecated", "--yes")))
    assert done.returncode == 0, done.stderr


def _differences(state: Mapping[str, str], before: Mapping[str, str]) -> list[str]:
    return sorted(name for name in {*state, *before} if state.get(name) != before.get(name))


if __name__ == "__main__":
    main()
