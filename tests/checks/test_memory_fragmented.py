"""memory-fragmented."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpudoctor.model import Outcome, Run
from tests.runs import GIB, RUN, finding, memory, outcome

CHECK = "memory-fragmented"


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        pytest.param(memory(split_bytes=5 * GIB), Outcome.FOUND, id="36 % of what is reserved"),
        pytest.param(memory(split_bytes=4 * GIB), Outcome.PASSED, id="29 %"),
        pytest.param(memory(split_bytes=GIB, reserved_bytes=2 * GIB), Outcome.PASSED, id="a small job"),
        pytest.param(memory(split_bytes=None), Outcome.SKIPPED, id="gaps unknown"),
        pytest.param(replace(RUN, memory=None), Outcome.SKIPPED, id="memory unknown"),
    ],
)
def test_outcome(run: Run, expected: Outcome) -> None:
    assert outcome(CHECK, run) is expected


def test_what_it_led_to() -> None:
    found = finding(CHECK, memory(split_bytes=7 * GIB, retries=12, out_of_memory=2))
    assert found.summary == (
        "Gaps take 50 % of PyTorch's memory, 7.0 GiB of the 14.0 GiB that PyTorch reserved; "
        "it emptied its cache 12 times; 2 allocations failed"
    )
    assert "expandable_segments:True" in found.remedies[0].commands[0]
