"""throttled."""

from __future__ import annotations

import pytest

from gpudoctor.model import Outcome, Run
from tests.runs import finding, gpu, outcome

CHECK = "throttled"


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        pytest.param(gpu(throttled="thermal", throttled_share=0.1), Outcome.FOUND, id="hot a tenth of the time"),
        pytest.param(gpu(throttled="thermal", throttled_share=0.09), Outcome.PASSED, id="less"),
        pytest.param(gpu(throttled="thermal", throttled_share=0.5, samples=4), Outcome.SKIPPED, id="four samples"),
        pytest.param(
            gpu(throttled="power", throttled_share=0.5, is_used=False), Outcome.SKIPPED, id="another program's GPU"
        ),
        pytest.param(gpu(throttled="slowdown", throttled_share=0.5, is_used=None), Outcome.FOUND, id="in a container"),
    ],
)
def test_outcome(run: Run, expected: Outcome) -> None:
    assert outcome(CHECK, run) is expected


def test_what_the_clocks_cost() -> None:
    run = gpu(throttled="thermal", throttled_share=0.5, clock_mhz=1560.0, temperature_peak_celsius=90.0)
    found = finding(CHECK, run)
    assert found.summary == "GPU 0 was too hot 50 % of the time: SM clock 1,560 of 3,120 MHz, up to 90 °C"
    assert found.details["saved"] == 0.25
    assert "ool" in found.remedies[0].summary
