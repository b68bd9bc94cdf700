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
        pytest.param(steps(operations=400, small_operations=400, cuda_graphs=True), Outcome.SKIPPED, id="CUDA graphs"),
        pytest.param(steps(kernels=300, gpu_busy_ms=3.0), Outcome.FOUND, id="300 kernels of 10 µs"),
        pytest.param(steps(kernels=299, gpu_busy_ms=2.9), Outcome.PASSED, id="fewer kernels"),
        pytest.param(steps(kernels=300, gpu_busy_ms=3.1), Outcome.PASSED, id="longer kernels"),
        pytest.param(steps(kernels=2000, gpu_busy_ms=11.9), Outcome.FOUND, id="busy for less than 60 %"),
        pytest.param(steps(kernels=2000, gpu_busy_ms=12.0), Outcome.PASSED, id="busy for 60 %"),
        pytest.param(
            steps(operations=400, small_operations=400, kernels=2000, gpu_busy_ms=19.0),
            Outcome.PASSED,
            id="counted kernels decide",
        ),
    ],
)
def test_outcome(run: Run, expected: Outcome) -> None:
    assert outcome(CHECK, run) is expected


def test_what_fewer_launches_can_save() -> None:
    found = finding(CHECK, steps(kernels=1000, gpu_busy_ms=4.0, operators=900))
    assert found.summary == "Each step launches 1,000 kernels of 4.0 µs, which keep the GPU busy for 20 % of it"
    assert found.details["saved"] == pytest.approx(0.4 + 0.4 + 0.1 - 0.2)
    assert "run.steps.operators" in found.facts


def test_nothing_measures_what_can_be_saved() -> None:
    found = finding(CHECK, steps(operations=400, small_operations=400, operators=1300))
    assert "400 operations, 400 of them small; the whole step dispatches 1,300 operators;" in found.summary
    assert (found.details["share"], found.details["saved"]) == (pytest.approx(0.8), None)
    assert "torch.compile" in found.remedies[0].commands[0]


def test_the_place_is_the_line_with_most_operators() -> None:
    place = {"operators_place": "cell.py:8"}
    assert finding(CHECK, steps(operations=400, small_operations=400, **place)).details["place"] == "cell.py:8"
    assert finding(CHECK, steps(kernels=1000, gpu_busy_ms=4.0, **place)).details["place"] == "cell.py:8"
