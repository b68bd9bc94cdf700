"""What is found on a run, in order, with gains that never exceed what there is to gain."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpudoctor.engine.run_findings import MOST_SAVED, findings_of
from gpudoctor.model import Finding, Run
from tests.runs import gpu, steps


def found_in(run: Run) -> tuple[Finding, ...]:
    findings, crashed = findings_of(run)
    assert not crashed
    return findings


def test_gains_together_never_exceed_the_whole_time() -> None:
    ill = steps(
        loader_share=0.5, copies_share=0.3, cloning_share=0.3, clones=9.0, forward_share=0.3, backward_share=0.3
    )
    slow = gpu(throttled="thermal", throttled_share=1.0, clock_mhz=300.0)
    findings = found_in(replace(ill, gpus=slow.gpus))
    gains = [1 - 1 / finding.details["speedup"] for finding in findings if finding.details["speedup"]]
    assert len(gains) >= 4
    assert sum(gains) <= MOST_SAVED + 0.01


@pytest.mark.parametrize(
    "run",
    [
        pytest.param(steps(autocast=None, autocasts=0.0), id="precision"),
        pytest.param(steps(operations=400, small_operations=400), id="launches"),
        pytest.param(
            steps(is_stand_in=True, copies_share=0.0, copy_bytes=1e8, pageable_bytes=1e8), id="copies of a stand-in"
        ),
    ],
)
def test_what_nothing_measured_has_no_gain(run: Run) -> None:
    findings = found_in(run)
    assert findings
    assert {finding.details["speedup"] for finding in findings} == {None}


def test_a_gain_of_nearly_nothing_is_not_put_before_a_warning() -> None:
    run = steps(synchronisations=1.0, synchronising_share=0.01, synchronising_call="item", operations=400,
                small_operations=400)  # fmt: skip
    assert [finding.check_id for finding in found_in(run)] == ["launch-bound", "synchronises-each-step"]


def test_the_largest_measured_gain_is_first() -> None:
    run = steps(copies_share=0.2, loader_share=0.5, operations=400, small_operations=400)
    assert [finding.check_id for finding in found_in(run)] == ["input-bound", "transfer-bound", "launch-bound"]
