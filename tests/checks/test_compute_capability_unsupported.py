import pytest

from gpudoctor.model import ComputeCapability, CudaVersion, Device, Fix, Outcome, Severity, Torch
from gpudoctor.testing import run_check


def device(capability: str | None, name: str = "GPU") -> Device:
    return Device(
        nvml_index=0, name=name, compute_capability=ComputeCapability.parse(capability) if capability else None
    )


@pytest.mark.parametrize(
    ("capability", "severity"),
    [
        pytest.param("3.0", Severity.WARNING, id="Kepler, no build at all"),
        pytest.param("3.7", Severity.INFO, id="Kepler, an old build"),
        pytest.param("7.0", Severity.INFO, id="Volta, the release before"),
        pytest.param("7.5", None, id="Turing"),
        pytest.param("8.9", None, id="Ada: code for 8.6 runs on it"),
        pytest.param("12.1", None, id="Blackwell"),
        pytest.param("5.3", None, id="Jetson: its builds come from NVIDIA"),
    ],
)
def test_severity(capability: str, severity: Severity | None) -> None:
    torch = Torch(installed=True)
    findings = run_check("compute-capability-unsupported", devices=(device(capability),), torch=torch).findings
    assert [finding.severity for finding in findings] == ([] if severity is None else [severity])


def test_a_report_without_pytorch_is_no_warning() -> None:
    """An nvidia-smi of an old GPU alone is of a machine that may need no PyTorch."""
    (finding,) = run_check("compute-capability-unsupported", devices=(device("3.0"),)).findings
    assert finding.severity is Severity.INFO


def test_the_last_versions_are_named() -> None:
    (finding,) = run_check("compute-capability-unsupported", devices=(device("7.0", "Tesla V100"),)).findings
    assert "compute capability 7.0" in finding.summary
    assert "PyTorch 2.14.1 (cu126) is the last that supports it, 2.15 does not" in finding.summary
    assert finding.summary.endswith("CUDA 12.9 is the last toolkit and R580 is the last driver branch")
    assert finding.details["last_torch"] == "2.14.1"
    assert finding.fixes == (Fix("keep-torch-at", version="2.14.1", variants="cu126"),)


def test_an_installed_build_that_runs_makes_it_advice() -> None:
    torch = Torch(installed=True, build="cuda", cuda_version=CudaVersion(10, 2), architectures=("sm_30", "sm_75"))
    (finding,) = run_check("compute-capability-unsupported", devices=(device("3.0"),), torch=torch).findings
    assert finding.severity is Severity.INFO
    assert finding.fixes == (Fix("keep-installed-torch"),)


def test_equal_devices_are_one_finding() -> None:
    assert len(run_check("compute-capability-unsupported", devices=(device("7.0"), device("7.0"))).findings) == 1


def test_the_product_shows_it_if_the_driver_does_not() -> None:
    (finding,) = run_check("compute-capability-unsupported", devices=(device(None, "Tesla V100-SXM2-16GB"),)).findings
    assert [evidence.fact for evidence in finding.evidence] == ["devices[0].name"]


@pytest.mark.parametrize(
    ("unknown", "reason"),
    [
        (device("19.0"), "compute capability 19.0 is not in the tables"),
        (device(None, "No Such GPU"), "devices[0].compute_capability is unknown"),
    ],
)
def test_a_newer_or_unknown_device_is_no_pass(unknown: Device, reason: str) -> None:
    result = run_check("compute-capability-unsupported", devices=(unknown,))
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, reason)
