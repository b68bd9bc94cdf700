"""The fuzzing and fault scripts run; RESULTS.md has what they measure in minutes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent


def run(*arguments: str) -> str:
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=FOLDER.parents[1], capture_output=True, text=True, check=True).stdout


def test_mutated_inputs_of_every_kind() -> None:
    *_, last = run(str(FOLDER / "fuzz.py"), "--count", "90").splitlines()
    assert last.startswith("90 inputs in ")
    assert last.endswith(" 0 faults.")


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
@pytest.mark.parametrize("fault", ["cuda_driver silent exit", "cuda_driver leaves the session twice"])
def test_a_fault_takes_no_other_answer_with_it(fault: str) -> None:
    *_, row, _, last = run(str(FOLDER / "faults.py"), "--only", fault).splitlines()
    assert row.startswith("| cuda_driver | ")
    assert "nothing" in row
    assert last == "0 rows are wrong (marked **)."
