"""launch-bound."""

from __future__ import annotations

import pytest

from gpudoctor.model import Outcome, Run
from tests.runs import finding, outcome, steps

CHECK = "launch-bound"


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        pytest.param(steps(operations=150, small_operations=150), Outcome.FOUND, id="150 small operations"),
        pytest.param(steps(operations=149, small_operations=149), Outcome.PASSED, id="fewer"),
        pytest.param(steps(operations=200, small_operations=160), Outcome.FOUND, id="a fifth is large"),
        pytest.param(steps(operations=202, small_operations=160), Outcome.PASSED, id="more is large"),
        pytest.param(steps(operations=400, small_operations=400, is_compiled=True), Outcome.SKIPPED, id="compiled"),
        pytest.param(steps(operations=400, small_operations=None), Outcome.SKIPPED, id="sizes unknown"),
        pytest.param(steps(operations=None), Outcome.SKIPPED, id="operations unknown"),
    ],
)
def test_outcome(run: Run, expected: Outcome) -> None:
    assert outcome(CHECK, run) is expected


def test_nothing_measures_what_can_be_saved() -> None:
    found = finding(CHECK, steps(operations=400, small_operations=400))
    assert "400 operations, 400 of them small" in found.summary
    assert (found.details["share"], found.details["saved"]) == (pytest.approx(0.8), None)
    assert "torch.compile" in found.remedies[0].commands[0]
