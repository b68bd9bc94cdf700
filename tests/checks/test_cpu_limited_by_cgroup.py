"""cpu-limited-by-cgroup."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpudoctor.model import Outcome, Run
from tests.runs import RUN, finding, outcome

CHECK = "cpu-limited-by-cgroup"


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        pytest.param(replace(RUN, throttled_periods=0.1), Outcome.FOUND, id="a tenth of the periods"),
        pytest.param(replace(RUN, throttled_periods=0.09), Outcome.PASSED, id="less"),
        pytest.param(replace(RUN, throttled_periods=None), Outcome.SKIPPED, id="unknown"),
    ],
)
def test_outcome(run: Run, expected: Outcome) -> None:
    assert outcome(CHECK, run) is expected


def test_the_limit_is_named() -> None:
    found = finding(CHECK, replace(RUN, throttled_periods=0.6, allowed_cpus=2.0))
    assert found.summary == "The CPU limit of 2 CPUs stopped the program in 60 % of all periods"
