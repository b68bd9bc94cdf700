"""Apple's MPS backend."""

from dataclasses import replace

import pytest

from gpudoctor.model import Environment, Outcome, PrecisionResult, Severity, System, Torch, TorchRuntime
from gpudoctor.testing import run_check

MAC = System(os="darwin", machine="arm64")
TORCH = Torch(installed=True, build="mps")
OPERATOR = "The operator 'aten::_fft_r2c' is not currently implemented for the MPS device."
LIVE = PrecisionResult(device="mps", precision="fp32", error=OPERATOR)


@pytest.mark.parametrize(
    ("built", "summary"),
    [
        pytest.param(True, "macOS does not offer the device", id="old macOS"),
        pytest.param(False, "built without MPS", id="another build"),
    ],
)
def test_not_available(*, built: bool, summary: str) -> None:
    runtime = TorchRuntime(mps_built=built, mps_available=False)
    finding = run_check("mps-issues", torch_runtime=runtime, system=MAC, torch=TORCH).findings[0]
    assert finding.severity is Severity.ERROR
    assert summary in finding.summary


@pytest.mark.parametrize(
    "runtime",
    [
        pytest.param(TorchRuntime(availability_error=OPERATOR), id="pasted"),
        pytest.param(
            TorchRuntime(precision_results=(PrecisionResult(device="mps", precision="fp32", error=OPERATOR),)),
            id="live",
        ),
    ],
)
def test_an_operator_is_missing(runtime: TorchRuntime) -> None:
    finding = run_check("mps-issues", torch_runtime=runtime).findings[0]
    assert finding.summary == "MPS has no implementation of aten::_fft_r2c"
    assert finding.remedies[0].commands[0] == "export PYTORCH_ENABLE_MPS_FALLBACK=1"


def test_no_memory_limit_is_advice() -> None:
    environment = Environment(variables={"PYTORCH_MPS_HIGH_WATERMARK_RATIO": "0.0"})
    runtime = TorchRuntime(mps_built=True, mps_available=True)
    result = run_check("mps-issues", torch_runtime=runtime, system=MAC, torch=TORCH, environment=environment)
    assert [finding.severity for finding in result.findings] == [Severity.INFO]


@pytest.mark.parametrize(
    ("runtime", "system"),
    [
        pytest.param(TorchRuntime(mps_built=True, mps_available=True), MAC, id="available"),
        pytest.param(
            TorchRuntime(mps_built=False, mps_available=False), replace(MAC, machine="x86_64"), id="Intel processor"
        ),
    ],
)
def test_passes(runtime: TorchRuntime, system: System) -> None:
    assert run_check("mps-issues", torch_runtime=runtime, system=system, torch=TORCH).outcome is Outcome.PASSED


@pytest.mark.parametrize(
    ("system", "reason"),
    [
        pytest.param(System(os="linux"), "this is not a Mac", id="Linux"),
        pytest.param(System(), "system.os is unknown", id="unknown"),
        pytest.param(MAC, "torch_runtime.mps_available is unknown", id="availability unknown"),
    ],
)
def test_skipped(system: System, reason: str) -> None:
    result = run_check("mps-issues", torch_runtime=TorchRuntime(), system=system, torch=TORCH)
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, reason)
