"""What a change gained, between two reports of gpudoctor run."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gpudoctor.reporters.run_comparison import compare, load, render_json, render_table


def report(step_ms: float | None, *checks: str, **steps: float) -> dict[str, Any]:
    return {
        "schema": "gpudoctor/run/1",
        "elapsed_seconds": 41.0,
        "findings": [{"check": check} for check in checks],
        "steps": None if step_ms is None else {"step_ms": step_ms, **steps},
    }


BEFORE = report(60.0, "input-bound", "amp-not-used", loader_share=0.7)
AFTER = report(20.0, "amp-not-used", "launch-bound", loader_share=0.1)


def test_the_gain() -> None:
    assert render_table(compare(BEFORE, AFTER), 100).splitlines() == [
        "A step takes 20.0 ms instead of 60.0 ms: 3.00 times faster.",
        "  data: 2.00 ms instead of 42.0 ms",
        "Fixed: input-bound",
        "New: launch-bound",
        "Still there: amp-not-used",
    ]


@pytest.mark.parametrize(
    ("after", "differs", "text"),
    [
        (report(61.0, "input-bound", "amp-not-used"), False, "no difference"),
        (report(120.0, "input-bound", "amp-not-used"), True, "2.00 times slower"),
        (report(None, "input-bound", "amp-not-used"), False, "ran for 41 s instead of 41 s. The steps are unknown"),
        (report(60.0), True, "Fixed: input-bound, amp-not-used"),
    ],
)
def test_differences(after: dict[str, Any], differs: bool, text: str) -> None:
    found = compare(BEFORE, after)
    assert found.differs is differs
    assert text in render_table(found, 100)
    assert json.loads(render_json(found))["differs"] is differs


@pytest.mark.parametrize("text", [b"", b"[1]", b"{}", b'{"schema": 1}', b"\xff", b"[" * 100_000])
def test_what_is_no_report(text: bytes) -> None:
    assert load(text) is None


def test_what_is_no_number_is_unknown() -> None:
    broken = {"schema": "gpudoctor/run/1", "findings": [3, {}], "steps": {"step_ms": "x"}, "elapsed_seconds": None}
    assert load(json.dumps(broken).encode()) == broken
    assert compare(broken, AFTER).gained is None


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (json.dumps(BEFORE, indent=2).encode()[:-20], "cut off or damaged"),
        (json.dumps({**BEFORE, "schema": "gpudoctor/run/2"}).encode(), "its schema is gpudoctor/run/2"),
        (b'{"schema": "gpudoctor/run/1"}', "it has no findings"),
        (json.dumps({**BEFORE, "findings": 7}).encode(), "it has no findings"),
    ],
    ids=["cut off", "newer", "without findings", "findings that are none"],
)
def test_a_report_that_cannot_be_read(text: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        load(text)


def test_the_same_step_time_is_said_once() -> None:
    assert "A step takes 60.0 ms: no difference." in render_table(compare(BEFORE, BEFORE), 100)
