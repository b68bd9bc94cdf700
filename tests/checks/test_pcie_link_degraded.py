from dataclasses import replace
from typing import Any

import pytest

from gpudoctor.model import Device, Outcome, Severity
from gpudoctor.testing import run_check

BUSY = Device(
    nvml_index=0,
    name="RTX 4090",
    pcie_width=16,
    pcie_width_max=16,
    pcie_generation=4,
    pcie_generation_max=4,
    performance_state=2,
    utilization_percent=97,
    throttle_reasons=(),
)
IDLE = replace(BUSY, performance_state=8, utilization_percent=0, throttle_reasons=("gpu_idle",))


@pytest.mark.parametrize(
    ("device", "severity"),
    [
        pytest.param(BUSY, None, id="full link"),
        pytest.param(replace(BUSY, pcie_width=8), Severity.WARNING, id="half the lanes under load"),
        pytest.param(replace(BUSY, pcie_generation=1), Severity.WARNING, id="low generation under load"),
        pytest.param(replace(IDLE, pcie_generation=1), None, id="low generation of an idle device"),
        pytest.param(replace(IDLE, pcie_width=8), Severity.INFO, id="fewer lanes of an idle device"),
        pytest.param(
            replace(BUSY, pcie_generation=1, throttle_reasons=("gpu_idle",)), None, id="state P2, yet nothing runs"
        ),
        pytest.param(
            replace(BUSY, pcie_generation=1, performance_state=None, utilization_percent=None), None, id="load unknown"
        ),
        pytest.param(replace(BUSY, pcie_width=0), None, id="no PCIe link at all"),
    ],
)
def test_severity(device: Device, severity: Severity | None) -> None:
    findings = run_check("pcie-link-degraded", devices=(device,)).findings
    assert [finding.severity for finding in findings] == ([] if severity is None else [severity])


def test_the_summary_has_both_values() -> None:
    device = replace(BUSY, pcie_width=4, pcie_generation=1)
    (finding,) = run_check("pcie-link-degraded", devices=(device,)).findings
    assert finding.summary == "The PCIe link of GPU 0 (RTX 4090) has 4 of 16 lanes and generation 1 of 4"
    assert finding.remedies[0].commands[0].startswith("nvidia-smi -i 0 --query-gpu=pcie.link.gen.current,")


def test_advice_says_that_the_device_is_idle() -> None:
    (finding,) = run_check("pcie-link-degraded", devices=(replace(IDLE, pcie_width=8),)).findings
    assert finding.summary.endswith("has 8 of 16 lanes while it is idle")


@pytest.mark.parametrize("fact", ["pcie_width", "pcie_width_max", "pcie_generation", "pcie_generation_max"])
def test_an_unknown_link_is_no_pass(fact: str) -> None:
    device = Device(**{**{name: getattr(BUSY, name) for name in BUSY.__dataclass_fields__}, fact: None})
    result = run_check("pcie-link-degraded", devices=(device,))
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, f"devices[0].{fact} is unknown")


def test_what_it_rests_on() -> None:
    (finding,) = run_check("pcie-link-degraded", devices=(replace(BUSY, pcie_width=8),)).findings
    names = ("pcie_width", "pcie_width_max", "pcie_generation", "pcie_generation_max", "performance_state")
    assert finding.facts == tuple(f"devices[0].{name}" for name in (*names, "utilization_percent"))


@pytest.mark.parametrize(
    ("changes", "severity"),
    [
        ({"performance_state": 2, "utilization_percent": 0}, Severity.WARNING),
        ({"performance_state": 3, "utilization_percent": 0}, Severity.INFO),
        ({"performance_state": 3, "utilization_percent": 1}, Severity.WARNING),
        ({"performance_state": None, "utilization_percent": None}, Severity.INFO),
        ({"throttle_reasons": None}, Severity.WARNING),
    ],
)
def test_what_is_busy(changes: dict[str, Any], severity: Severity) -> None:
    (finding,) = run_check("pcie-link-degraded", devices=(replace(BUSY, pcie_width=8, **changes),)).findings
    assert finding.severity is severity
