"""recompiles-each-step."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpudoctor.model import Outcome, Run
from tests.runs import RUN, finding, outcome, steps

CHECK = "recompiles-each-step"


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        pytest.param(steps(is_compiled=True, graphs=3), Outcome.FOUND, id="three more graphs"),
        pytest.param(steps(is_compiled=True, graphs=2), Outcome.PASSED, id="two"),
        pytest.param(steps(graphs=3), Outcome.SKIPPED, id="not compiled"),
        pytest.param(replace(RUN, steps=None), Outcome.SKIPPED, id="steps unknown"),
    ],
)
def test_outcome(run: Run, expected: Outcome) -> None:
    assert outcome(CHECK, run) is expected


def test_the_shapes_and_the_cost() -> None:
    found = finding(CHECK, steps(is_compiled=True, graphs=8, shapes=12, compile_seconds=1.0))
    assert found.summary == "torch.compile compiled 8 more graphs in 100 steps, for 12 shapes of its input"
    assert found.details["saved"] == 0.5
    assert "dynamic=True" in found.remedies[0].commands[1]


def test_the_place_is_the_function_that_is_compiled() -> None:
    run = steps(is_compiled=True, graphs=8, compile_seconds=1.0, compiling_place="train.py:5")
    assert finding(CHECK, run).details["place"] == "train.py:5"
