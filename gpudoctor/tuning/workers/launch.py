"""A worker that starts torchrun for a number of processes on this machine, and answers what they measured."""

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gpudoctor.processes import BOOT, FOLDER
from gpudoctor.tuning.workers.ranks import ORDER
from gpudoctor.worker import take_over_streams

TAIL_LINES = 15


def main() -> None:
    """Answer each order with the rates by batch size, and why there are not more."""
    orders, answer = take_over_streams()
    for order in orders:
        answer(launch(dict(order)))


def launch(order: dict[str, Any]) -> Mapping[str, Any]:
    """Return `rates`: pairs of batch size and samples per second of all processes; `problem`: empty if all ran."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder, "rates")
        output.touch()
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
        command += ["--nproc-per-node", str(order["processes"]), "--no-python"]
        command += [sys.executable, "-c", BOOT, FOLDER, "gpudoctor.tuning.workers.ranks"]
        environ = {"OMP_NUM_THREADS": "1", **os.environ, ORDER: json.dumps({**order, "output": str(output)})}
        done = subprocess.run(
            command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
        rates = [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]
    is_complete = done.returncode == 0 or len(rates) == len(order["batch_sizes"])
    return {"rates": rates, "problem": "" if is_complete else _reason(done.stdout)}


def _reason(text: str) -> str:
    """Return the last line that names an error of a process, not of torchrun itself."""
    lines = [line.split("]: ")[-1].strip() for line in text.splitlines() if line.strip()]
    named = [line for line in lines if "Error: " in line and "ChildFailedError" not in line]
    return re.sub(r"^[\w.]+\.(\w+: )", r"\1", (named or lines or ["the processes gave no reason"])[0])
