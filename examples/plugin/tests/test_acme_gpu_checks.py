"""A check of a plugin is tested as gpudoctor's own are: on facts written by hand."""

import acme_gpu_checks  # noqa: F401 - registers the check, also where the plugin is not installed
import pytest

from gpudoctor.model import Driver, DriverVersion, Outcome
from gpudoctor.testing import run_check

CHECK = "acme-driver-not-approved"


def driver(version: str) -> Driver:
    return Driver(version=DriverVersion.parse(version))


@pytest.mark.parametrize(
    ("version", "outcome"),
    [
        ("550.54.15", Outcome.FOUND),
        ("570.124.06", Outcome.PASSED),
        ("580.95.05", Outcome.PASSED),
        ("590.44.01", Outcome.FOUND),
    ],
)
def test_outcome(version: str, outcome: Outcome) -> None:
    assert run_check(CHECK, driver=driver(version)).outcome is outcome


def test_the_finding_names_both_branches() -> None:
    (finding,) = run_check(CHECK, driver=driver("550.54.15")).findings
    assert finding.summary == "Driver 550.54.15 belongs to branch R550, not to R570 or R580"


def test_an_unknown_version_is_no_pass() -> None:
    result = run_check(CHECK, driver=Driver())
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, "driver.version is unknown")
