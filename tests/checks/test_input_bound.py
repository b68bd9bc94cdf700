"""input-bound."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpudoctor.model import Outcome, Run
from tests.runs import LOADER, finding, outcome, outside, steps

CHECK = "input-bound"


def stand_in(workers: int, **changed: Any) -> Run:
    return steps(loader=replace(LOADER, workers=workers), is_stand_in=True, **changed)


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        pytest.param(steps(loader_share=0.25), Outcome.FOUND, id="a quarter of each step"),
        pytest.param(steps(loader_share=0.39, step_ms=5.0), Outcome.FOUND, id="2 ms"),
        pytest.param(steps(loader_share=0.38, step_ms=5.0), Outcome.PASSED, id="less than 2 ms"),
        pytest.param(steps(loader_share=0.49, step_ms=1.0), Outcome.FOUND, id="half of a short step"),
        pytest.param(steps(loader_share=0.2, prepare_share=0.04), Outcome.PASSED, id="less"),
        pytest.param(steps(loader_share=0.0, prepare_share=0.3), Outcome.FOUND, id="the program's own preparation"),
        pytest.param(steps(loader_share=0.9, counted=19), Outcome.SKIPPED, id="too few steps"),
        pytest.param(stand_in(0, loader_share=0.25), Outcome.FOUND, id="a stand-in without workers, 5 ms"),
        pytest.param(stand_in(0, loader_share=0.24, prepare_share=0.0), Outcome.PASSED, id="a stand-in, less"),
        pytest.param(stand_in(1, loader_share=0.45), Outcome.PASSED, id="a stand-in with a worker"),
        pytest.param(outside(idle_share=0.6, idle_cpu_cores=1.0), Outcome.FOUND, id="from outside, a busy core"),
        pytest.param(
            outside(idle_share=0.5, idle_cpu_cores=1.0), Outcome.PASSED, id="from outside, idle half of the time"
        ),
        pytest.param(outside(idle_share=0.6), Outcome.SKIPPED, id="from outside, CPU use unknown"),
        pytest.param(
            outside(idle_share=0.6, idle_cpu_cores=0.7), Outcome.SKIPPED, id="from outside, CPU neither busy nor idle"
        ),
        pytest.param(outside(is_used=False), Outcome.SKIPPED, id="from outside, GPU not used"),
    ],
)
def test_outcome(run: Run, expected: Outcome) -> None:
    assert outcome(CHECK, run) is expected


def test_the_gain_the_place_and_the_change() -> None:
    found = finding(CHECK, steps(loader_share=0.7, loader=replace(LOADER, workers=0)))
    assert found.details == {"share": 0.71, "place": "train.py:12", "saved": 0.71}
    assert "num_workers=4" in found.remedies[0].commands[0]
    assert "71 % of each step of 20.0 ms" in found.summary


@pytest.mark.parametrize(
    ("run", "fix"),
    [
        (steps(loader_share=0.7), "load-with-more-workers"),
        (replace(steps(loader_share=0.7), cpu_cores=14.5), "load-with-less-work"),
        (steps(loader_share=0.7, loader=None), "load-with-workers"),
        (steps(loader_share=0.7, loader=replace(LOADER, workers=0, is_iterable=True)), "share-stream-among-workers"),
        (steps(loader_share=0.7, loader=replace(LOADER, is_iterable=True)), "load-with-more-workers"),
        (outside(idle_share=0.6, idle_cpu_cores=0.1), "prefetch-data"),
        (outside(idle_share=0.6, idle_cpu_cores=4.0), "load-with-less-work"),
        (replace(outside(idle_share=0.6, idle_cpu_cores=1.0), imports_torch=False), "prepare-input-ahead"),
    ],
)
def test_the_fix_fits_the_cause(run: Run, fix: str) -> None:
    assert [each.name for each in finding(CHECK, run).fixes] == [fix]


def test_from_outside_it_is_only_likely() -> None:
    found = finding(CHECK, outside(idle_share=0.6, idle_cpu_cores=1.0))
    assert not found.certain
    assert "probably" in found.summary


@pytest.mark.parametrize(
    ("run", "workers"),
    [
        pytest.param(steps(loader_share=0.7), 8, id="twice as many"),
        pytest.param(steps(loader_share=0.7, loader=None), 4, id="the usual number"),
        pytest.param(replace(steps(loader_share=0.7, loader=None), allowed_cpus=2.0), 2, id="one for each CPU"),
        pytest.param(
            replace(steps(loader_share=0.7, loader=None), allowed_cpus=0.5, cpu_cores=None), 1, id="half a CPU"
        ),
    ],
)
def test_how_many_workers(run: Run, workers: int) -> None:
    assert f"num_workers={workers}," in finding(CHECK, run).remedies[0].commands[0]
