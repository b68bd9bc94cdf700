"""Which checks run, which are left out, and which say why a requirement is not met."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gpudoctor.configuration.requirements import UNMET, parse_requirement
from gpudoctor.engine import checkup
from gpudoctor.engine.checkup import Rules, check_files, check_host
from gpudoctor.engine.runner import run_checks
from gpudoctor.model import Snapshot
from gpudoctor.registry import Check

NAMES = {UNMET: "tool", "shm-too-small": "system", "profile-stale": "profile", "driver-too-old": "driver"}
CHECKS = tuple(
    Check(id=name, family=family, sections=(), optional=(), explains=(), function=lambda: iter(()))
    for name, family in NAMES.items()
)
SHM = Rules(requirements=(parse_requirement("shm>=1GiB", "here"),))


def ids(checks: tuple[Check, ...]) -> list[str]:
    return [check.id for check in checks]


@pytest.mark.parametrize(
    ("rules", "names", "chosen"),
    [
        (Rules(), (), list(NAMES)),
        (Rules(), ("driver",), ["driver-too-old"]),
        (SHM, ("driver",), [UNMET, "driver-too-old"]),
        (SHM, (), list(NAMES)),
    ],
)
def test_what_is_required_is_judged_whatever_is_selected(
    rules: Rules, names: tuple[str, ...], chosen: list[str]
) -> None:
    assert ids(checkup._chosen(CHECKS, names, rules)) == chosen


@pytest.mark.parametrize(
    ("rules", "left_out", "causes"),
    [
        pytest.param(Rules(), {}, [], id="nothing is required"),
        pytest.param(SHM, {}, ["shm-too-small"], id="what may find why, though nobody selected it"),
        pytest.param(SHM, {UNMET: "why"}, [], id="nobody asks whether it is met"),
        pytest.param(SHM, {"shm-too-small": "why"}, [], id="the user left it out"),
    ],
)
def test_the_causes_of_a_requirement_that_is_not_met(rules: Rules, left_out: dict[str, str], causes: list[str]) -> None:
    chosen = checkup._chosen(CHECKS, ("driver",), rules)
    assert ids(checkup._causes(CHECKS, chosen, left_out, rules)) == causes
    assert checkup._causes(CHECKS, CHECKS, left_out, rules) == ()


@pytest.mark.parametrize(
    ("rules", "ignored", "left_out"),
    [
        (Rules(), {"driver": "no", "shm-too-small": "later"}, {"driver-too-old": "no", "shm-too-small": "later"}),
        (Rules(), {"tool": "no"}, {UNMET: "no"}),
        (SHM, {"tool": "no"}, {}),
        (SHM, {UNMET: "no"}, {UNMET: "no"}),
    ],
)
def test_what_is_required_is_left_out_by_its_own_id_only(
    rules: Rules, ignored: dict[str, str], left_out: dict[str, str]
) -> None:
    assert checkup._left_out(CHECKS, ignored, rules) == left_out


@pytest.mark.parametrize("names", [(), ("driver",)])
def test_a_report_says_how_long_it_took(
    names: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = iter((10.0, 11.25, 20.0, 20.5, 30.0, 31.0))
    monkeypatch.setattr(checkup, "time", SimpleNamespace(monotonic=lambda: next(times)))
    (tmp_path / "report.txt").write_text("Driver Version: 550.54.14\n", encoding="utf-8")
    reports = [check_files([str(tmp_path / "report.txt")], names) for _ in range(2)]
    every = run_checks((), Snapshot())
    monkeypatch.setattr(checkup, "_check_all", lambda host, rules: every)
    monkeypatch.setattr(checkup, "_check_some", lambda host, names, ignored, rules: every)
    host: Any = None
    reports.append(check_host(host, names))
    assert [report.duration_s for report in reports] == [1.25, 0.5, 1.0]
