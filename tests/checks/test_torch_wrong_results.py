"""torch-wrong-results."""

import pytest

from gpudoctor.data.numerics import error_bound
from gpudoctor.engine.runner import run_checks
from gpudoctor.model import Outcome, PackageVersion, PrecisionResult, Python, Severity, System, Torch, TorchRuntime
from gpudoctor.readers.report import read_texts
from gpudoctor.testing import run_check
from tests.own_checks import own_checks
from tests.torch_runtimes import L4, T4, with_result, working

CHECK = "torch-wrong-results"
NO_KERNEL = "RuntimeError: CUDA error: no kernel image is available for execution on the device"
OUT_OF_MEMORY = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 MiB."
NOT_FINITE = "not finite: 65536 of 65536 values"


@pytest.mark.parametrize(
    ("runtime", "outcome"),
    [
        pytest.param(working(L4, T4), Outcome.PASSED, id="all right"),
        pytest.param(with_result(working(), "fp32", relative_error=0.5), Outcome.FOUND, id="fp32 wrong"),
        pytest.param(
            with_result(working(), "fp32", relative_error=error_bound("tf32")),
            Outcome.PASSED,
            id="fp32 as exact as TF32",
        ),
        pytest.param(
            with_result(working(), "fp32", relative_error=1.01 * error_bound("tf32")), Outcome.FOUND, id="less exact"
        ),
        pytest.param(
            with_result(working(), "bf16", relative_error=error_bound("bf16")), Outcome.PASSED, id="bf16 at its bound"
        ),
        pytest.param(with_result(working(), "bf16", relative_error=0.2), Outcome.FOUND, id="bf16 wrong"),
        pytest.param(with_result(working(), "tf32", relative_error=0.1), Outcome.FOUND, id="TF32 wrong"),
        pytest.param(
            working(precision_results=(PrecisionResult(device="cuda:0", precision="fp6", relative_error=0.5),)),
            Outcome.PASSED,
            id="a precision that nobody knows, from a snapshot",
        ),
        pytest.param(
            with_result(working(), "fp32", relative_error=None, error=NO_KERNEL), Outcome.FOUND, id="fp32 raises"
        ),
        pytest.param(
            with_result(working(), "bf16", relative_error=None, error="RuntimeError: not supported"),
            Outcome.PASSED,
            id="bf16 is not there",
        ),
        pytest.param(
            with_result(working(), "fp32", relative_error=None, error=NOT_FINITE), Outcome.FOUND, id="fp32 gives NaN"
        ),
        pytest.param(
            with_result(working(), "fp16", relative_error=None, error=NOT_FINITE), Outcome.PASSED, id="fp16-nan says so"
        ),
    ],
)
def test_outcome(runtime: TorchRuntime, outcome: Outcome) -> None:
    assert run_check(CHECK, torch_runtime=runtime).outcome is outcome


@pytest.mark.parametrize(
    ("runtime", "reason"),
    [
        (working(precision_results=None), "torch_runtime.precision_results is unknown"),
        (working(precision_results=()), "PyTorch has no GPU to compute on"),
        (with_result(working(), "fp32", relative_error=None, error=OUT_OF_MEMORY), "the memory of cuda:0 is full"),
    ],
)
def test_what_cannot_be_determined_is_skipped(runtime: TorchRuntime, reason: str) -> None:
    result = run_check(CHECK, torch_runtime=runtime)
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, reason)


def test_each_device_has_one_finding_with_both_numbers() -> None:
    runtime = with_result(working(L4, T4), "fp32", device="cuda:1", relative_error=0.5)
    runtime = with_result(runtime, "fp16", device="cuda:1", relative_error=0.7)
    (finding,) = run_check(CHECK, torch_runtime=runtime).findings
    assert finding.severity is Severity.ERROR
    assert finding.summary == (
        "The fp32 and the fp16 product on cuda:1 (Tesla T4) is wrong: its error is 50 %, "
        "and rounding causes at most 0.0016 %"
    )
    assert [evidence.value for evidence in finding.evidence] == [0.5, 0.7]


def test_a_wrong_number_is_first_looked_for_in_the_hardware() -> None:
    finding = run_check(CHECK, torch_runtime=with_result(working(), "fp32", relative_error=0.5)).findings[0]
    assert finding.remedies[0].commands[0] == "nvidia-smi -q -d ECC,TEMPERATURE"
    windows = run_check(
        CHECK, torch_runtime=with_result(working(), "fp32", relative_error=0.5), system=System(os="windows")
    )
    assert not any("sudo" in command for command in windows.findings[0].remedies[0].commands)


def test_an_exception_is_first_looked_for_in_the_installation() -> None:
    finding = run_check(
        CHECK,
        torch_runtime=with_result(working(), "fp32", relative_error=None, error=NO_KERNEL),
        torch=Torch(version=PackageVersion("2.13.0+cu130"), build="cuda"),
        python=Python(executable="/env/bin/python"),
    ).findings[0]
    assert finding.summary == f"The fp32 product on cuda:0 (NVIDIA L4) fails: {NO_KERNEL}"
    assert "--force-reinstall" in finding.remedies[0].commands[0]


def test_mps_is_checked_too() -> None:
    result = PrecisionResult(device="mps", precision="fp32", relative_error=0.9)
    finding = run_check(CHECK, torch_runtime=TorchRuntime(precision_results=(result,))).findings[0]
    assert finding.subject == "mps"
    assert not any("nvidia" in command for remedy in finding.remedies for command in remedy.commands)


@pytest.mark.parametrize(
    ("shown", "found"),
    [
        ("torch.ones(3, device='cuda').sum()\ntensor(0., device='cuda:0')", True),
        ("(torch.ones(2, device='cuda') + 1).cpu()\ntensor([0., 0.])", True),
        ("torch.ones(3, device='cuda').sum()\ntensor(3., device='cuda:0')", False),
        ("(torch.ones(3, device='cuda') * 0).sum()\ntensor(0., device='cuda:0')", False),
    ],
)
def test_zeros_from_ones_are_wrong(shown: str, found: bool) -> None:
    text = f">>> torch.cuda.is_available()\nTrue\n>>> {shown}\n"
    report = run_checks(own_checks(), read_texts([("log", text.encode())]))
    assert (report.verdict == "healthy") is not found
    assert any(finding.check_id == "torch-wrong-results" for finding in report.findings) is found
