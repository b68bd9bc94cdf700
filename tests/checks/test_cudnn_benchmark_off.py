"""cudnn-benchmark-off."""

import pytest

from gpudoctor.model import Outcome, Severity, TorchRuntime
from gpudoctor.testing import run_check
from tests.torch_runtimes import working

CHECK = "cudnn-benchmark-off"


@pytest.mark.parametrize(
    ("runtime", "outcome", "reason"),
    [
        pytest.param(working(), Outcome.FOUND, "", id="off"),
        pytest.param(working(cudnn_benchmark=True), Outcome.PASSED, "", id="on"),
        pytest.param(working(cudnn_version=0), Outcome.SKIPPED, "PyTorch has no cuDNN", id="no cuDNN"),
        pytest.param(
            working(cudnn_version=None), Outcome.SKIPPED, "torch_runtime.cudnn_version is unknown", id="cuDNN unknown"
        ),
        pytest.param(
            working(cudnn_benchmark=None),
            Outcome.SKIPPED,
            "torch_runtime.cudnn_benchmark is unknown",
            id="switch unknown",
        ),
        pytest.param(working(available=False), Outcome.SKIPPED, "PyTorch can use no GPU here", id="no usable GPU"),
        pytest.param(working(hip_version="6.4"), Outcome.SKIPPED, "PyTorch is built for ROCm", id="MIOpen instead"),
    ],
)
def test_outcome(runtime: TorchRuntime, outcome: Outcome, reason: str) -> None:
    result = run_check(CHECK, torch_runtime=runtime)
    assert (result.outcome, result.reason) == (outcome, reason)


def test_it_is_advice_and_says_when_it_helps() -> None:
    (finding,) = run_check(CHECK, torch_runtime=working()).findings
    assert finding.severity is Severity.INFO
    assert "torch.backends.cudnn.benchmark = True" in finding.remedies[0].summary
    assert "input shapes" in finding.remedies[0].summary
