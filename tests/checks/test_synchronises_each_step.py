"""synchronises-each-step."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpudoctor.model import Outcome, Run, Severity
from tests.runs import RUN, finding, outcome, steps

CHECK = "synchronises-each-step"


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        pytest.param(steps(synchronisations=0.9), Outcome.FOUND, id="nine of ten steps"),
        pytest.param(steps(synchronisations=0.02), Outcome.PASSED, id="every fiftieth step"),
        pytest.param(
            steps(kind="loader", synchronisations=1.0, synchronising_call="cpu"),
            Outcome.PASSED,
            id="results of inference",
        ),
        pytest.param(
            steps(kind="loader", synchronisations=2.0, synchronising_call="cpu"), Outcome.FOUND, id="twice in inference"
        ),
        pytest.param(
            steps(kind="loader", synchronisations=1.0, synchronising_call="item"),
            Outcome.FOUND,
            id="a sum in inference",
        ),
        pytest.param(steps(synchronisations=1.0, synchronising_call="cpu"), Outcome.FOUND, id="results of training"),
        pytest.param(replace(RUN, steps=None), Outcome.SKIPPED, id="steps unknown"),
    ],
)
def test_outcome(run: Run, expected: Outcome) -> None:
    assert outcome(CHECK, run) is expected


@pytest.mark.parametrize(
    ("share", "stand_in", "severity"),
    [(0.05, False, Severity.WARNING), (0.04, False, Severity.INFO), (0.0, True, Severity.WARNING)],
)
def test_what_costs_little_is_advice(share: float, stand_in: bool, severity: Severity) -> None:
    run = steps(synchronisations=1.0, synchronising_share=share, is_stand_in=stand_in)
    assert finding(CHECK, run).severity is severity


def test_the_call_and_its_place() -> None:
    run = steps(
        synchronisations=3.0, synchronising_share=0.2, synchronising_place="train.py:42", synchronising_call="item"
    )
    found = finding(CHECK, run)
    assert found.summary == "Each step waits 3 times for the GPU with .item() at train.py:42: 20 % of its time"
    assert found.details == {"share": 0.2, "place": "train.py:42", "saved": 0.2}


def test_the_gpu_computes_while_the_program_waits() -> None:
    run = steps(synchronisations=1.0, synchronising_share=0.8, synchronising_call="__repr__")
    found = finding(CHECK, run)
    assert found.details["saved"] == pytest.approx(0.12)
    assert "print()" in found.summary


@pytest.mark.parametrize(
    ("package", "fix", "setting"),
    [
        ("transformers", "log-seldom", "logging_steps=100"),
        ("lightning", "log-seldom", "log_every_n_steps=100"),
        ("another_package", "read-results-seldom", "every 100 steps"),
        ("", "read-results-seldom", "every 100 steps"),
    ],
)
def test_a_package_has_a_setting(package: str, fix: str, setting: str) -> None:
    run = steps(synchronisations=1.0, synchronising_call="item", synchronising_package=package)
    found = finding(CHECK, run)
    assert ([each.name for each in found.fixes], setting in found.remedies[0].summary) == ([fix], True)
    assert (f"in {package}" in found.summary) is bool(package)


@pytest.mark.parametrize("call", ["nonzero", "torch.unique", "__getitem__"])
def test_a_size_that_only_the_gpu_knows(call: str) -> None:
    found = finding(CHECK, steps(synchronisations=1.0, synchronising_call=call))
    assert [each.name for each in found.fixes] == ["keep-sizes-fixed"]
