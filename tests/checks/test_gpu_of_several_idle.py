"""gpu-of-several-idle."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpudoctor.model import Outcome, Run
from tests.runs import GIB, GPU, RUN, finding, outcome

CHECK = "gpu-of-several-idle"


def two(**second: Any) -> Run:
    """Return a run on the first of two GPUs."""
    idle: dict[str, Any] = {"is_used": False, "utilization_percent": 0.0, **second}
    return replace(RUN, gpus=(GPU, replace(GPU, nvml_index=1, **idle)))


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        pytest.param(two(), Outcome.FOUND, id="the second does nothing"),
        pytest.param(two(utilization_percent=3.0), Outcome.PASSED, id="somebody works on it"),
        pytest.param(two(other_bytes=GIB), Outcome.PASSED, id="another program has it"),
        pytest.param(two(is_used=None), Outcome.PASSED, id="nothing shows it"),
        pytest.param(two(is_used=True), Outcome.PASSED, id="both used"),
        pytest.param(two(samples=4), Outcome.SKIPPED, id="four samples"),
        pytest.param(two(is_mig=True), Outcome.SKIPPED, id="MIG"),
        pytest.param(RUN, Outcome.SKIPPED, id="one GPU"),
    ],
)
def test_outcome(run: Run, expected: Outcome) -> None:
    assert outcome(CHECK, run) is expected


def test_each_gets_a_process() -> None:
    found = finding(CHECK, two())
    assert found.summary == "The program used 1 of 2 GPUs; idle: GPU 1"
    assert found.remedies[0].commands[0] == "torchrun --nproc-per-node=2 train.py"
