"""What the benchmark on real trainings makes of its measurements; RESULTS.md has what it measures in an hour."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("torch")

from tests.benchmarks.real_rates import Rates
from tests.benchmarks.real_workloads import WORKLOADS
from tests.benchmarks.tuning_real import agreements, rates_of, regret, report, sizes

GRID = [["fp32", 8, 100.0], ["fp32", 16, 200.0], ["fp32", 24, 195.0], ["bf16", 16, 50.0]]


def run(batch_size: int, precision: str = "fp32", seconds: float = 30.0) -> dict[str, Any]:
    return {"precision": precision, "batch_size": batch_size, "seconds": seconds}


def result(*batch_sizes: int, **others: Any) -> dict[str, Any]:
    return {"budget": 30.0, "grid": GRID, "gpudoctor": [run(size) for size in batch_sizes], "others": others}


def test_the_grid_has_two_points_for_each_doubling() -> None:
    assert sizes(16) == [1, 2, 3, 4, 6, 8, 12, 16]
    assert sizes(20)[-1] == 16


def test_regret_is_against_the_best_point() -> None:
    rates = rates_of(result())
    assert regret(rates, run(16)) == 0.0
    assert regret(rates, run(8)) == pytest.approx(0.5)
    assert regret(rates, run(16, "bf16")) == pytest.approx(0.75)
    assert regret(rates, run(0, "none")) == 1.0, "no recommendation"


def test_answers_agree_if_they_are_as_fast() -> None:
    assert list(agreements({"mlp": result(16, 24, 8)})) == [True, False, False]


def test_the_report_says_whether_the_goals_are_met() -> None:
    theirs = {"Lightning power": run(24), "accelerate": {"problem": "not installed: accelerate"}}
    lines = list(report({"mlp": {**result(16, 16, 8), "others": theirs}}))
    assert "| mlp | fp32, 16: 200/s | gpudoctor | fp32 16, fp32 16, fp32 8 | 0.0%, 0.0%, 50.0% | 30, 30, 30 |" in lines
    assert "| mlp | | accelerate | not installed: accelerate | | |" in lines
    assert "median regret: 0.0% (goal 3%: met)" in lines
    assert "largest regret: 50.0% (goal 10%: missed)" in lines
    assert "same answer, or as fast within 3%: 33% (goal 90%)" in lines
    assert "runs beyond 110% of the budget: 0 of 3" in lines
    assert lines[-1] == "Lightning power: median regret 2.5%, largest 2.5%"


def test_a_run_beyond_its_budget_is_counted() -> None:
    late = {**result(16), "gpudoctor": [run(16, seconds=35.0)]}
    assert "runs beyond 110% of the budget: 1 of 1" in list(report({"mlp": late}))


@pytest.mark.parametrize("name", WORKLOADS)
def test_every_workload_trains_in_both_precisions(name: str) -> None:
    measured = Rates(name)
    rates = measured.measure([("fp32", 2), ("bf16", 2)], rounds=2)
    assert min(rates.values()) > 0
    assert set(measured.spreads()) == set(rates) >= measured.close_to_best() != set()
