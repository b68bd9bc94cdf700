"""amp-not-used."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpudoctor.model import Outcome, Run
from tests.runs import MEMORY, finding, outcome, steps

CHECK = "amp-not-used"


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        pytest.param(steps(autocast=None), Outcome.FOUND, id="float32"),
        pytest.param(steps(autocast=None, tf32=True), Outcome.PASSED, id="TF32"),
        pytest.param(steps(autocast=None, precisions=("bfloat16",)), Outcome.PASSED, id="weights in half precision"),
        pytest.param(steps(autocast=None, large_elements=2**20 - 1), Outcome.PASSED, id="a small model"),
        pytest.param(steps(autocast=None, is_compiled=True), Outcome.SKIPPED, id="compiled"),
        pytest.param(
            replace(steps(autocast=None), memory=replace(MEMORY, capability=(6, 1))),
            Outcome.SKIPPED,
            id="no tensor cores",
        ),
        pytest.param(replace(steps(autocast=None), memory=None), Outcome.SKIPPED, id="GPU unknown"),
    ],
)
def test_outcome(run: Run, expected: Outcome) -> None:
    assert outcome(CHECK, run) is expected


@pytest.mark.parametrize(("capability", "dtype"), [((8, 9), "torch.bfloat16"), ((7, 5), "torch.float16")])
def test_the_precision_is_one_that_the_gpu_has(capability: tuple[int, ...], dtype: str) -> None:
    run = replace(steps(autocast=None), memory=replace(MEMORY, capability=capability))
    (fix,) = finding(CHECK, run).fixes
    assert fix.arguments["dtype"] == dtype
    assert ("GradScaler" in finding(CHECK, run).remedies[0].summary) is (dtype == "torch.float16")


def test_the_place_is_the_line_with_the_largest_products() -> None:
    assert finding(CHECK, steps(autocast=None, products_place="model.py:9")).details["place"] == "model.py:9"
