"""batch-could-grow."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpudoctor.model import Outcome, Run
from tests.runs import GIB, GPU, MEMORY, RUN, STEPS, finding, outcome

CHECK = "batch-could-grow"


def small(peak: int | None = GIB, loader_share: float = 0.0, **on_gpu: Any) -> Run:
    """Return a run with a small batch."""
    return replace(
        RUN,
        steps=replace(STEPS, loader_share=loader_share),
        memory=replace(MEMORY, allocated_peak_bytes=peak),
        gpus=(replace(GPU, **on_gpu),),
    )


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        pytest.param(small(utilization_percent=49.0), Outcome.FOUND, id="idle half of the time"),
        pytest.param(small(utilization_percent=50.0), Outcome.PASSED, id="busier"),
        pytest.param(small(utilization_percent=0.0), Outcome.PASSED, id="the driver saw nothing"),
        pytest.param(small(utilization_percent=None), Outcome.SKIPPED, id="utilisation unknown"),
        pytest.param(small(peak=10 * GIB, utilization_percent=40.0), Outcome.PASSED, id="memory in use"),
        pytest.param(small(loader_share=0.3, utilization_percent=40.0), Outcome.PASSED, id="waits for data"),
        pytest.param(small(is_used=None), Outcome.SKIPPED, id="no GPU listed"),
        pytest.param(small(memory_peak_bytes=None, peak=None), Outcome.SKIPPED, id="memory unknown"),
        pytest.param(
            small(memory_peak_bytes=GIB, peak=None, utilization_percent=40.0), Outcome.FOUND, id="seen from outside"
        ),
    ],
)
def test_outcome(run: Run, expected: Outcome) -> None:
    assert outcome(CHECK, run) is expected


def test_the_batch_and_where_it_is_set() -> None:
    found = finding(CHECK, small(utilization_percent=40.0))
    assert found.summary == "The batch of 64 uses 4 % of the GPU's memory and 40 % of its time"
    assert found.details["place"] == "train.py:12"
    assert "gpudoctor tune" in found.remedies[0].commands[0]
