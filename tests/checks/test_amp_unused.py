"""amp-unused."""

import pytest

from gpudoctor.model import Outcome, PackageVersion, Severity, TorchRuntime
from gpudoctor.testing import run_check
from tests.torch_runtimes import GTX_1080, GTX_1660, L4, T4, with_result, working

CHECK = "amp-unused"
FROM_THE_FUTURE = ("NVIDIA Z100", "99.0")


@pytest.mark.parametrize(
    ("runtime", "outcome", "reason"),
    [
        pytest.param(working(L4), Outcome.FOUND, "", id="bf16 tensor cores"),
        pytest.param(working(T4), Outcome.FOUND, "", id="fp16 tensor cores"),
        pytest.param(working(GTX_1660), Outcome.PASSED, "", id="7.5 without tensor cores"),
        pytest.param(working(GTX_1080), Outcome.PASSED, "", id="slow fp16"),
        pytest.param(
            working(FROM_THE_FUTURE),
            Outcome.SKIPPED,
            "how much NVIDIA Z100 (compute capability 99.0) gains is unknown",
            id="not in the table",
        ),
        pytest.param(working(available=False), Outcome.SKIPPED, "PyTorch can use no GPU here", id="no usable GPU"),
        pytest.param(
            working(precision_results=None),
            Outcome.SKIPPED,
            "torch_runtime.precision_results is unknown",
            id="products not tried",
        ),
        pytest.param(
            working(version=PackageVersion("1.9.1+cu111")),
            Outcome.SKIPPED,
            "PyTorch 1.9.1+cu111 has no torch.autocast",
            id="too old",
        ),
    ],
)
def test_outcome(runtime: TorchRuntime, outcome: Outcome, reason: str) -> None:
    result = run_check(CHECK, torch_runtime=runtime)
    assert (result.outcome, result.reason) == (outcome, reason)


def test_each_device_gets_the_precision_that_is_best_for_it() -> None:
    bf16, fp16 = run_check(CHECK, torch_runtime=working(T4, L4)).findings
    assert (bf16.severity, fp16.severity) == (Severity.INFO, Severity.INFO)
    assert "bf16 tensor cores of NVIDIA L4 (compute capability 8.9)" in bf16.summary
    assert "dtype=torch.bfloat16" in bf16.remedies[0].summary
    assert "fp16 tensor cores of Tesla T4 (compute capability 7.5)" in fp16.summary
    assert "dtype=torch.float16" in fp16.remedies[0].summary
    assert 'torch.amp.GradScaler("cuda")' in fp16.remedies[0].summary


def test_a_precision_that_failed_is_not_advised() -> None:
    runtime = with_result(working(L4), "bf16", relative_error=None, error="RuntimeError: no")
    (finding,) = run_check(CHECK, torch_runtime=runtime).findings
    assert "fp16 tensor cores" in finding.summary


def test_the_scaler_is_one_that_the_release_has() -> None:
    runtime = working(T4, version=PackageVersion("2.2.2+cu121"))
    (finding,) = run_check(CHECK, torch_runtime=runtime).findings
    assert "torch.cuda.amp.GradScaler()" in finding.remedies[0].summary
