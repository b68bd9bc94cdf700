"""memory-nearly-full."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpudoctor.model import Outcome, Run
from tests.runs import GIB, finding, memory, outcome, outside

CHECK = "memory-nearly-full"


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        pytest.param(memory(allocated_peak_bytes=20 * GIB), Outcome.FOUND, id="83 % in tensors"),
        pytest.param(memory(allocated_peak_bytes=19 * GIB), Outcome.PASSED, id="79 %"),
        pytest.param(outside(memory_peak_bytes=20 * GIB), Outcome.FOUND, id="from outside"),
        pytest.param(outside(memory_peak_bytes=19 * GIB), Outcome.PASSED, id="from outside, 79 %"),
        pytest.param(
            replace(outside(memory_peak_bytes=20 * GIB), imports_torch=False), Outcome.SKIPPED, id="memory of JAX"
        ),
        pytest.param(outside(memory_peak_bytes=None), Outcome.SKIPPED, id="unknown"),
    ],
)
def test_outcome(run: Run, expected: Outcome) -> None:
    assert outcome(CHECK, run) is expected


def test_whose_memory_it_is() -> None:
    assert finding(CHECK, memory(allocated_peak_bytes=21 * GIB)).summary.startswith(
        "Tensors took up to 21.0 GiB of 24.0"
    )
    found = finding(CHECK, outside(memory_peak_bytes=21 * GIB))
    assert found.summary.startswith("Programs took up to 21.0 GiB")
    assert found.facts == ("run.gpus[0].memory_peak_bytes", "run.gpus[0].memory_total_bytes")
