"""The age of the driver's release branch."""

import pytest

from gpudoctor.data.drivers import end_of_life
from gpudoctor.model import Driver, DriverVersion, Outcome, Severity
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
    assert finding.summary == "Driver 535.129.03 is of branch R535, whose support ended on 2026-06-30"


@pytest.mark.parametrize(
    ("driver", "reason"),
    [
        pytest.param(Driver(), "driver.version is unknown", id="version unknown"),
        pytest.param(
            Driver(version=DriverVersion((575, 57, 8))),
            "no end of life is published for branch R575",
            id="branch without a date",
        ),
    ],
)
def test_skipped(driver: Driver, reason: str) -> None:
    result = run_check("driver-branch-end-of-life", driver=driver, taken_at="2026-11-20T10:00:00Z")
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, reason)
