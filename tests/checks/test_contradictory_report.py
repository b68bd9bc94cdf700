"""Facts of a pasted report that cannot be of one machine at one time."""

import pytest

from gpudoctor.model import (
    ComputeCapability,
    Contradiction,
    Device,
    Driver,
    DriverVersion,
    Outcome,
    Severity,
    System,
)
from gpudoctor.testing import run_check

TWO_DRIVERS = Contradiction(fact="driver.version", taken="535.54.03 (nvidia-smi)", other="470.57.02 (collect_env)")
TWO_SYSTEMS = Contradiction(fact="system.os", taken="linux (uname)", other="windows (nvidia-smi)")


def test_both_values_are_shown_as_advice() -> None:
    finding = run_check("contradictory-report", contradictions=(TWO_DRIVERS,)).findings[0]
    assert finding.severity is Severity.INFO
    assert "535.54.03 (nvidia-smi) (used here) and 470.57.02 (collect_env)" in finding.summary
    assert finding.facts == ("contradictions[0].taken", "contradictions[0].other")


def test_wsl_has_two_systems() -> None:
    result = run_check("contradictory-report", contradictions=(TWO_SYSTEMS, TWO_DRIVERS), system=System(wsl=2))
    assert [finding.subject for finding in result.findings] == ["the driver version"]


def test_texts_of_two_machines_are_a_warning() -> None:
    other = Contradiction(fact="devices", taken="NVIDIA L4 (b.txt)", other="NVIDIA A100 (a.txt)")
    findings = run_check("contradictory-report", contradictions=(other, TWO_DRIVERS)).findings
    assert [finding.severity for finding in findings] == [Severity.WARNING, Severity.INFO]
    assert "NVIDIA L4 (b.txt)" in findings[0].summary


@pytest.mark.parametrize(
    ("capability", "driver", "outcome"),
    [
        pytest.param((12, 0), (418, 87), Outcome.FOUND, id="Blackwell on R418"),
        pytest.param((12, 0), (570, 26), Outcome.PASSED, id="Blackwell on its first branch"),
        pytest.param((8, 9), (520, 56, 6), Outcome.PASSED, id="an early driver of the first branch"),
        pytest.param((7, 0), (384, 81), Outcome.PASSED, id="first driver unknown"),
    ],
)
def test_a_device_newer_than_the_driver(capability: tuple[int, int], driver: tuple[int, ...], outcome: Outcome) -> None:
    device = Device(nvml_index=0, name="GPU", compute_capability=ComputeCapability(*capability))
    result = run_check(
        "contradictory-report", contradictions=(), devices=(device,), driver=Driver(version=DriverVersion(driver))
    )
    assert result.outcome is outcome


def test_a_report_that_shows_each_fact_once() -> None:
    assert run_check("contradictory-report", contradictions=()).outcome is Outcome.SKIPPED
