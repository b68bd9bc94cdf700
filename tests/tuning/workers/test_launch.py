"""What counts as an answer of the processes that torchrun started."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from gpudoctor.tuning.workers import launch
from gpudoctor.tuning.workers.ranks import ORDER

ABORTED = "terminate called without an active exception\n"


@pytest.mark.parametrize(
    ("measured", "status", "problem"),
    [
        pytest.param([8, 16], 0, "", id="all"),
        pytest.param([8, 16], 1, "", id="all, aborted afterwards"),
        pytest.param([8], 1, "terminate called without an active exception", id="aborted between"),
        pytest.param([], 1, "terminate called without an active exception", id="aborted at once"),
    ],
)
def test_processes_that_abort_after_their_last_answer_are_no_problem(
    measured: list[int], status: int, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def torchrun(command: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
        lines = "".join(json.dumps([size, 10.0]) + "\n" for size in measured)
        Path(json.loads(options["env"][ORDER])["output"]).write_text(lines)
        return subprocess.CompletedProcess(command, status, ABORTED if status else "")

    monkeypatch.setattr(subprocess, "run", torchrun)
    answer = launch.launch({"processes": 2, "batch_sizes": [8, 16]})
    assert answer == {"rates": [[size, 10.0] for size in measured], "problem": problem}
    assert ORDER not in os.environ
