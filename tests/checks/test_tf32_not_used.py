"""tf32-not-used."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpudoctor.model import Outcome, Run
from tests.runs import MEMORY, finding, outcome, steps

CHECK = "tf32-not-used"


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        pytest.param(steps(autocast=None), Outcome.FOUND, id="off"),
        pytest.param(steps(autocast=None, tf32=True), Outcome.PASSED, id="on"),
        pytest.param(steps(autocast=None, tf32=None), Outcome.SKIPPED, id="unknown"),
        pytest.param(steps(), Outcome.PASSED, id="autocast"),
        pytest.param(steps(autocast=None, large_elements=0), Outcome.PASSED, id="a small model"),
        pytest.param(
            replace(steps(autocast=None), memory=replace(MEMORY, capability=(7, 5))),
            Outcome.SKIPPED,
            id="none on Turing",
        ),
    ],
)
def test_outcome(run: Run, expected: Outcome) -> None:
    assert outcome(CHECK, run) is expected


def test_the_change_is_one_line() -> None:
    found = finding(CHECK, steps(autocast=None))
    assert 'torch.set_float32_matmul_precision("high")' in found.remedies[0].summary


def test_the_place_is_the_line_with_the_largest_products() -> None:
    assert finding(CHECK, steps(autocast=None, products_place="model.py:9")).details["place"] == "model.py:9"
