"""tensors-cloned-each-step."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpudoctor.model import Outcome, Run
from tests.runs import RUN, finding, outcome, steps

CHECK = "tensors-cloned-each-step"


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        pytest.param(steps(clones=1.0, cloning_share=0.05), Outcome.FOUND, id="5 % of the time"),
        pytest.param(steps(clones=1.0, cloning_share=0.04), Outcome.PASSED, id="less"),
        pytest.param(steps(clones=4.0, clone_bytes=20.0 * 2**20), Outcome.FOUND, id="half of the model"),
        pytest.param(steps(clones=4.0, clone_bytes=19.0 * 2**20), Outcome.PASSED, id="less than half of the model"),
        pytest.param(steps(clones=3.0, clone_bytes=40.0 * 2**20), Outcome.PASSED, id="three clones"),
        pytest.param(steps(clones=0.1, cloning_share=0.5), Outcome.PASSED, id="every tenth step"),
        pytest.param(replace(RUN, steps=None), Outcome.SKIPPED, id="steps unknown"),
    ],
)
def test_outcome(run: Run, expected: Outcome) -> None:
    assert outcome(CHECK, run) is expected


def test_the_place_and_the_change() -> None:
    run = steps(clones=8.0, clone_bytes=40.0 * 2**20, cloning_share=0.1, cloning_place="train.py:50")
    found = finding(CHECK, run)
    assert found.summary == "Each step clones 8 tensors, 40.0 MiB at train.py:50: 10 % of its time"
    assert "detach()" in found.remedies[0].commands[0]
