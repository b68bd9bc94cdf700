"""What stands between GPUs that talk to each other."""

import pytest

from gpudoctor.model import Device, Environment, Outcome, Severity, System
from gpudoctor.testing import run_check

TWO = (Device(nvml_index=0), Device(nvml_index=1))
LINKED = (Device(nvml_index=0, nvlinks_active=4), Device(nvml_index=1, nvlinks_active=4))


def linux(*, iommu: bool) -> System:
    return System(os="linux", wsl=0, container="", iommu=iommu)


@pytest.mark.parametrize("name", ["NCCL_P2P_DISABLE", "NCCL_IB_DISABLE"])
def test_a_path_switched_off_is_advice(name: str) -> None:
    finding = run_check("nccl-p2p-problem", devices=TWO, environment=Environment(variables={name: "1"})).findings[0]
    assert finding.severity is Severity.INFO
    assert finding.summary.startswith(f"{name}=1 keeps NCCL from using")
    assert finding.remedies[0].commands[0] == f"unset {name}"


def test_an_iommu_between_gpus_is_advice() -> None:
    finding = run_check("nccl-p2p-problem", devices=TWO, system=linux(iommu=True)).findings[0]
    assert finding.severity is Severity.INFO
    assert finding.remedies[0].commands[0] == "export NCCL_P2P_DISABLE=1"


@pytest.mark.parametrize(
    ("devices", "system", "variables"),
    [
        pytest.param(TWO, linux(iommu=False), {}, id="no IOMMU"),
        pytest.param(LINKED, linux(iommu=True), {}, id="NVLink"),
        pytest.param(TWO, linux(iommu=False), {"NCCL_P2P_DISABLE": "0"}, id="switched on"),
    ],
)
def test_passes(devices: tuple[Device, ...], system: System, variables: dict[str, str]) -> None:
    environment = Environment(variables=variables)
    result = run_check("nccl-p2p-problem", devices=devices, system=system, environment=environment)
    assert result.outcome is Outcome.PASSED


@pytest.mark.parametrize(("devices", "reason"), [(TWO[:1], "there is only one GPU"), (None, "devices: not known")])
def test_skipped(devices: tuple[Device, ...] | None, reason: str) -> None:
    result = run_check("nccl-p2p-problem", devices=devices)
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, reason)
