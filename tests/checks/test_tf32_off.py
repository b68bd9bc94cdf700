"""tf32-off."""

import pytest

from gpudoctor.model import Environment, Outcome, PackageVersion, Severity, TorchRuntime
from gpudoctor.testing import run_check
from tests.torch_runtimes import GTX_1080, L4, T4, with_result, working

CHECK = "tf32-off"


@pytest.mark.parametrize(
    ("runtime", "outcome", "reason"),
    [
        pytest.param(working(L4), Outcome.FOUND, "", id="off"),
        pytest.param(working(L4, matmul_tf32=True), Outcome.PASSED, "", id="on"),
        pytest.param(working(T4), Outcome.SKIPPED, "Tesla T4 (compute capability 7.5): no TF32", id="none on Turing"),
        pytest.param(working(T4, L4), Outcome.FOUND, "", id="one device of two has it"),
        pytest.param(
            working(L4, matmul_tf32=None), Outcome.SKIPPED, "torch_runtime.matmul_tf32 is unknown", id="switch unknown"
        ),
        pytest.param(
            working(available=False), Outcome.SKIPPED, "PyTorch can use no GPU here", id="no usable GPU, no advice"
        ),
        pytest.param(
            with_result(working(L4), "tf32", relative_error=0.5),
            Outcome.SKIPPED,
            "NVIDIA L4 (compute capability 8.9): no TF32",
            id="TF32 that is wrong is not advised",
        ),
    ],
)
def test_outcome(runtime: TorchRuntime, outcome: Outcome, reason: str) -> None:
    result = run_check(CHECK, torch_runtime=runtime)
    assert (result.outcome, result.reason) == (outcome, reason)


def test_the_gain_and_both_errors_measured_are_reported() -> None:
    (finding,) = run_check(CHECK, torch_runtime=working(GTX_1080, L4, L4)).findings
    assert finding.severity is Severity.INFO
    assert "2 x NVIDIA L4 (compute capability 8.9)" in finding.summary
    assert "(numerical error here: 0.03 %)" in finding.summary
    assert [str(evidence.value) for evidence in finding.evidence] == ["False", "8.9", "8.9", "0.0003", "3e-07"]


@pytest.mark.parametrize(
    ("version", "switch"),
    [
        ("2.13.0+cu130", 'torch.set_float32_matmul_precision("high")'),
        ("1.12.0", 'torch.set_float32_matmul_precision("high")'),
        ("1.11.0", "torch.backends.cuda.matmul.allow_tf32 = True"),
    ],
)
def test_the_switch_is_one_that_the_release_has(version: str, switch: str) -> None:
    (finding,) = run_check(CHECK, torch_runtime=working(version=PackageVersion(version))).findings
    assert switch in finding.remedies[-1].summary


def test_a_variable_that_forbids_it_goes_first() -> None:
    environment = Environment(variables={"NVIDIA_TF32_OVERRIDE": "0"})
    (finding,) = run_check(CHECK, torch_runtime=working(), environment=environment).findings
    assert finding.remedies[0].commands[0] == "unset NVIDIA_TF32_OVERRIDE"
