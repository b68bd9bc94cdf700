"""How answers become a snapshot: which section each fills, and how it went."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from gpudoctor.model import SECTIONS, ProbeReport, Snapshot, System
from gpudoctor.probes.host import Answer, ProbeContext, Question
from gpudoctor.probes.snapshot import PARTS, begin_snapshot, take_snapshot

LINUX = {"values": {"platform": {"value": "linux"}}}


@dataclass
class Machine:
    """A host with these answers, which remembers what it was asked."""

    answers: Mapping[str, Answer] = field(default_factory=dict)
    setting: ProbeContext = field(default_factory=lambda: ProbeContext(environ={}, directory=Path("/none")))
    taken_at: str = "2026-01-02T03:04:05Z"
    asked: list[str] = field(default_factory=list)

    def ask(self, questions: Iterable[Question]) -> Callable[[], Mapping[str, Answer]]:
        self.asked += [question.name for question in questions]
        return lambda: self.answers


def reports(snapshot: Snapshot, section: str) -> list[ProbeReport]:
    return [report for report in snapshot.reports if report.section == section]


@pytest.mark.parametrize(
    ("answer", "system", "went"),
    [
        pytest.param(
            Answer(state="ok", facts=LINUX, seconds=0.12345),
            System(os="linux", container=""),
            {"state": "ok", "seconds": 0.123},
            id="facts",
        ),
        pytest.param(
            Answer(state="timed-out", detail="no answer in 3 s", seconds=3.0),
            None,
            {"state": "timed-out", "detail": "no answer in 3 s", "seconds": 3.0},
            id="no answer",
        ),
        pytest.param(
            Answer(state="ok", facts={"values": 3}, seconds=0.0005),
            None,
            {
                "state": "failed",
                "detail": "its answer could not be read: AttributeError: 'int' object has no attribute 'get'",
                "seconds": 0.001,
            },
            id="nonsense",
        ),
        pytest.param(
            None,
            None,
            {"state": "not-run", "detail": "not asked: --fast, or no selected check needs it"},
            id="not asked",
        ),
    ],
)
def test_how_an_answer_is_read(answer: Answer | None, system: System | None, went: dict[str, Any]) -> None:
    snapshot = take_snapshot(Machine({} if answer is None else {"system": answer}))
    assert snapshot.system == system
    assert reports(snapshot, "system") == [ProbeReport(section="system", probe="system", **went)]


@pytest.mark.parametrize(
    ("facts", "went"),
    [
        pytest.param({}, {"state": "absent", "detail": "there is nothing to look at"}, id="nothing there"),
        pytest.param({"unavailable": "no rights"}, {"state": "failed", "detail": "no rights"}, id="nobody may read it"),
        pytest.param({"images": []}, {"state": "ok"}, id="none"),
        pytest.param(None, {"state": "absent", "detail": "there is nothing to look at"}, id="nothing to ask"),
    ],
)
def test_a_part_that_may_be_absent(
    facts: dict[str, Any] | None, went: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = [part._replace(why_absent="there is nothing to look at") if part.why_absent else part for part in PARTS]
    monkeypatch.setattr("gpudoctor.probes.snapshot.PARTS", parts)
    snapshot = take_snapshot(Machine({} if facts is None else {"images": Answer(state="ok", facts=facts)}))
    assert snapshot.images == (() if facts and "images" in facts else None)
    assert reports(snapshot, "images") == [ProbeReport(section="images", probe="images", **went)]


@pytest.mark.parametrize(
    ("sections", "asked"),
    [
        (("torch",), ["python"]),
        (("driver",), ["kernel-log", "driver-files", "nvml", "cuda-driver"]),
        (("devices", "system"), ["system", "nvml"]),
        ((), []),
    ],
)
def test_only_what_fills_a_section_is_asked(sections: tuple[str, ...], asked: list[str]) -> None:
    machine = Machine()
    begin_snapshot(machine, sections)()
    assert machine.asked == asked


def test_every_section_has_a_report_but_what_comes_without_asking() -> None:
    snapshot = take_snapshot(Machine())
    assert {*SECTIONS} - {report.section for report in snapshot.reports} == {"environment", "run", "symptoms", "words"}
