"""The age of the driver's release branch."""

import pytest

from gpudoctor.data.drivers import end_of_life
from gpudoctor.model import Device, Driver, DriverVersion, Outcome, Severity
from gpudoctor.testing import run_check

R535 = Driver(version=DriverVersion((535, 129, 3)))


@pytest.mark.parametrize(
    ("taken_at", "outcome"),
    [
        pytest.param("2026-06-30T23:00:00Z", Outcome.PASSED, id="its last day"),
        pytest.param("2026-07-01T00:00:00Z", Outcome.FOUND, id="the day after"),
    ],
)
def test_the_day_counts(taken_at: str, outcome: Outcome) -> None:
    assert str(end_of_life(DriverVersion((535, 129, 3)))) == "2026-06-30"
    assert run_check("driver-branch-end-of-life", driver=R535, taken_at=taken_at).outcome is outcome


def test_it_is_advice() -> None:
    finding = run_check("driver-branch-end-of-life", driver=R535, taken_at="2026-11-20T10:00:00Z").findings[0]
    assert finding.severity is Severity.INFO
    assert finding.summary == "Driver 535.129.03 belongs to branch R535, whose support ended on 2026-06-30"


@pytest.mark.parametrize(
    ("driver", "reason"),
    [
        pytest.param(Driver(), "driver.version is unknown", id="version unknown"),
        pytest.param(
            Driver(version=DriverVersion((590, 48, 1))),
            "no end of life is published for branch R590",
            id="branch without a date",
        ),
    ],
)
def test_skipped(driver: Driver, reason: str) -> None:
    result = run_check("driver-branch-end-of-life", driver=driver, taken_at="2026-11-20T10:00:00Z")
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, reason)


@pytest.mark.parametrize(
    ("name", "outcome"),
    [
        pytest.param("Tesla K80", Outcome.PASSED, id="its last branch"),
        pytest.param("Tesla T4", Outcome.FOUND, id="newer branches support it"),
    ],
)
def test_the_last_branch_of_a_gpu_cannot_be_left(name: str, outcome: Outcome) -> None:
    r470 = Driver(version=DriverVersion((470, 256, 2)))
    devices = (Device(nvml_index=0, name=name),)
    result = run_check("driver-branch-end-of-life", driver=r470, devices=devices, taken_at="2026-11-20T10:00:00Z")
    assert result.outcome is outcome


def test_a_day_that_is_not_published_is_not_named_as_one() -> None:
    r550 = Driver(version=DriverVersion((550, 163, 1)))
    (finding,) = run_check("driver-branch-end-of-life", driver=r550, taken_at="2026-11-20T10:00:00Z").findings
    assert "had ended by 2026-02-28" in finding.summary
