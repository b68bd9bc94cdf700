"""gpu-never-used."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpudoctor.model import Outcome, Run, Severity
from tests.runs import RUN, finding, outcome, outside, steps

CHECK = "gpu-never-used"
NEVER = outside(is_used=False, utilization_percent=0.0)


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        pytest.param(steps(parameter_devices=("cpu",), sent_to_gpu=False), Outcome.FOUND, id="trains on the CPU"),
        pytest.param(steps(parameter_devices=("cpu",)), Outcome.PASSED, id="data went to the GPU"),
        pytest.param(NEVER, Outcome.FOUND, id="from outside"),
        pytest.param(replace(NEVER, sent_to_gpu=True), Outcome.PASSED, id="no steps, but data went to the GPU"),
        pytest.param(replace(outside(is_used=False), samples=4), Outcome.SKIPPED, id="four samples"),
        pytest.param(outside(is_used=None), Outcome.SKIPPED, id="in a container"),
        pytest.param(replace(NEVER, exit_status=0), Outcome.FOUND, id="has ended"),
        pytest.param(replace(NEVER, exit_status=1), Outcome.SKIPPED, id="failed before its first step"),
        pytest.param(replace(NEVER, exit_status=137), Outcome.FOUND, id="killed"),
        pytest.param(
            replace(steps(parameter_devices=("cpu",), sent_to_gpu=False), exit_status=1),
            Outcome.FOUND,
            id="failed later",
        ),
        pytest.param(replace(RUN, gpus=()), Outcome.SKIPPED, id="no GPU"),
        pytest.param(steps(parameter_devices=()), Outcome.PASSED, id="inference that sends data"),
    ],
)
def test_outcome(run: Run, expected: Outcome) -> None:
    assert outcome(CHECK, run) is expected


def test_what_others_did_is_said() -> None:
    assert "0 % throughout" in finding(CHECK, outside(is_used=False, utilization_percent=0.0)).summary
    assert "other programs" in finding(CHECK, outside(is_used=False, utilization_percent=80.0)).summary


def test_the_change_as_code() -> None:
    found = finding(CHECK, steps(parameter_devices=("cpu",), sent_to_gpu=False))
    assert found.severity is Severity.ERROR
    assert found.remedies[0].commands[0] == 'model = model.to("cuda")'


def test_the_place_is_where_the_cpu_computes() -> None:
    never = {"parameter_devices": ("cpu",), "sent_to_gpu": False, "operators_place": "train.py:7"}
    assert finding(CHECK, steps(**never)).details["place"] == "train.py:7"
    assert finding(CHECK, steps(**never, products_place="model.py:9")).details["place"] == "model.py:9"
    assert finding(CHECK, NEVER).details["place"] is None
