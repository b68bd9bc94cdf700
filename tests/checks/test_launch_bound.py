"""launch-bound."""

from __future__ import annotations

import pytest

from gpudoctor.model import Outcome, Run
from tests.runs import finding, outcome, steps

CHECK = "launch-bound"


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        pytest.param(steps(operations=400, step_ms=25.0), Outcome.FOUND, id="as long as a launch"),
        pytest.param(steps(operations=400, step_ms=26.0), Outcome.PASSED, id="longer kernels"),
        pytest.param(steps(operations=150, step_ms=5.0), Outcome.FOUND, id="150 operations"),
        pytest.param(steps(operations=149, step_ms=5.0), Outcome.PASSED, id="fewer operations"),
        pytest.param(steps(operations=400, step_ms=5.0, is_compiled=True), Outcome.SKIPPED, id="compiled"),
        pytest.param(steps(operations=None), Outcome.SKIPPED, id="operations unknown"),
    ],
)
def test_outcome(run: Run, expected: Outcome) -> None:
    assert outcome(CHECK, run) is expected


def test_half_of_it_can_be_saved() -> None:
    found = finding(CHECK, steps(operations=400, step_ms=10.0))
    assert "about 1000 small kernels, one every 8 µs" in found.summary
    assert (found.details["share"], found.details["saved"]) == (pytest.approx(0.8), pytest.approx(0.4))
    assert "torch.compile" in found.remedies[0].commands[0]
