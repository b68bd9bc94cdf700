"""transfer-bound."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpudoctor.model import Outcome, Run
from tests.runs import LOADER, RUN, finding, outcome, steps

CHECK = "transfer-bound"


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        pytest.param(steps(copies_share=0.1), Outcome.FOUND, id="a tenth of each step"),
        pytest.param(
            steps(copies_share=0.2, is_stand_in=True),
            Outcome.PASSED,
            id="stand-in: one pinned copy takes time of its own",
        ),
        pytest.param(steps(copies_share=0.2, background_bytes=2.0**20), Outcome.PASSED, id="in the background"),
        pytest.param(steps(copies_share=0.2, background_bytes=2.0**19), Outcome.FOUND, id="half in the background"),
        pytest.param(
            steps(copies_share=0.2, background_bytes=2.0**20, copies=9.0), Outcome.FOUND, id="many in the background"
        ),
        pytest.param(steps(copies_share=0.09), Outcome.PASSED, id="less"),
        pytest.param(steps(copies_share=0.0, pageable_bytes=1e9), Outcome.PASSED, id="measured as nothing"),
        pytest.param(
            steps(is_stand_in=True, copies_share=0.0, copy_bytes=1e8, pageable_bytes=1e8),
            Outcome.FOUND,
            id="stand-in: estimated",
        ),
        pytest.param(
            steps(is_stand_in=True, copies_share=0.0, copies=8.0, pageable_bytes=1e3),
            Outcome.FOUND,
            id="stand-in: one by one",
        ),
        pytest.param(
            steps(is_stand_in=True, copies_share=0.0, pageable_bytes=1e3), Outcome.PASSED, id="stand-in: a small batch"
        ),
        pytest.param(steps(is_stand_in=True, copies_share=0.0, copies=9.0), Outcome.PASSED, id="stand-in: pinned"),
        pytest.param(replace(RUN, steps=None), Outcome.SKIPPED, id="steps unknown"),
    ],
)
def test_outcome(run: Run, expected: Outcome) -> None:
    assert outcome(CHECK, run) is expected


def test_a_data_set_that_fits_goes_to_the_gpu_once() -> None:
    run = steps(copies_share=0.3, copy_bytes=2.0**20, pageable_bytes=2.0**20, source_bytes=25 * 2**20)
    found = finding(CHECK, run)
    assert "the same 25.0 MiB again and again" in found.summary
    assert [fix.name for fix in found.fixes] == ["keep-data-on-gpu", "pin-and-overlap-copies"]
    assert "25.0 MiB of 24.0 GiB" in found.remedies[0].summary
    assert found.details == {"share": 0.3, "place": "train.py:21", "saved": 0.3}


def test_a_data_set_that_does_not_fit_stays() -> None:
    run = steps(copies_share=0.3, copy_bytes=2.0**30, source_bytes=10 * 2**30, counted=30)
    assert [fix.name for fix in finding(CHECK, run).fixes] == ["pin-and-overlap-copies"]


def test_a_loader_that_is_iterated_again_copies_again() -> None:
    run = steps(copies_share=0.3, counted=200, loader=replace(LOADER, epochs=2))
    assert "the same 100 MiB again and again" in finding(CHECK, run).summary


def test_many_copies_become_one() -> None:
    assert "copy-in-one-piece" in [fix.name for fix in finding(CHECK, steps(copies_share=0.3, copies=64.0)).fixes]


def test_a_program_without_a_loader_pins_its_data_itself() -> None:
    run = steps(copies_share=0.3, copy_bytes=2.0**20, pageable_bytes=2.0**20, loader=None)
    assert [fix.name for fix in finding(CHECK, run).fixes] == ["pin-data-and-overlap-copies"]
    assert not any("DataLoader" in command for command in finding(CHECK, run).remedies[0].commands)


@pytest.mark.parametrize(
    ("prepare_share", "source_bytes", "fix"),
    [
        pytest.param(0.1, None, "pin-and-overlap-copies", id="made each step"),
        pytest.param(0.09, None, "pin-data-and-overlap-copies", id="picked"),
        pytest.param(0.5, 2**30, "pin-data-and-overlap-copies", id="slices of data in memory"),
    ],
)
def test_batches_that_are_made_each_step_cannot_be_pinned_before(
    prepare_share: float, source_bytes: int | None, fix: str
) -> None:
    run = steps(copies_share=0.3, counted=30, loader=None, prepare_share=prepare_share, source_bytes=source_bytes)
    assert [named.name for named in finding(CHECK, run).fixes] == [fix]
