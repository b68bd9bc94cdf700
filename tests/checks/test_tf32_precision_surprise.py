"""tf32-precision-surprise."""

import pytest

from gpudoctor.data.numerics import error_bound
from gpudoctor.model import (
    ComputeCapability,
    CudaVersion,
    Device,
    Environment,
    Fix,
    Outcome,
    PackageVersion,
    Severity,
    Symptom,
    Torch,
    TorchRuntime,
)
from gpudoctor.testing import run_check
from tests.torch_runtimes import L4, T4, with_result, working

CHECK = "tf32-precision-surprise"
SURPRISED = with_result(working(L4), "fp32", relative_error=3e-4)


def allowing(name: str, value: str = "1") -> Environment:
    return Environment(variables={name: value})


def release(version: str, build: str = "cuda") -> Torch:
    return Torch(version=PackageVersion(version), build=build, cuda_version=CudaVersion(11, 1))


def device(major: int) -> tuple[Device, ...]:
    return (Device(nvml_index=0, compute_capability=ComputeCapability(major, 0)),)


@pytest.mark.parametrize(
    ("runtime", "environment", "outcome"),
    [
        pytest.param(SURPRISED, None, Outcome.FOUND, id="error of TF32"),
        pytest.param(
            with_result(working(L4), "fp32", relative_error=error_bound("fp32")), None, Outcome.PASSED, id="float32"
        ),
        pytest.param(
            with_result(working(L4), "fp32", relative_error=0.5), None, Outcome.PASSED, id="torch-wrong-results"
        ),
        pytest.param(working(L4), allowing("TORCH_ALLOW_TF32_CUBLAS_OVERRIDE"), Outcome.FOUND, id="allowed for torch"),
        pytest.param(working(L4), allowing("CUPY_TF32"), Outcome.FOUND, id="allowed for CuPy"),
        pytest.param(working(L4), allowing("CUPY_TF32", "0"), Outcome.PASSED, id="forbidden"),
        pytest.param(working(T4), allowing("CUPY_TF32"), Outcome.PASSED, id="allowed where there is none"),
        pytest.param(working(L4, matmul_tf32=True), None, Outcome.PASSED, id="allowed, strict products are strict"),
    ],
)
def test_outcome(runtime: TorchRuntime, environment: Environment | None, outcome: Outcome) -> None:
    assert run_check(CHECK, torch_runtime=runtime, environment=environment).outcome is outcome


def test_a_variable_that_forbids_it_wins() -> None:
    environment = Environment(variables={"CUPY_TF32": "1", "NVIDIA_TF32_OVERRIDE": "0"})
    assert run_check(CHECK, torch_runtime=working(L4), environment=environment).outcome is Outcome.PASSED


def test_what_was_measured_without_a_known_reason_is_a_warning() -> None:
    (finding,) = run_check(CHECK, torch_runtime=SURPRISED).findings
    assert finding.severity is Severity.WARNING
    assert "on cuda:0 has the error of TF32: 0.030 %, while float32 gives at most 0.0016 %" in finding.summary
    assert finding.fixes == (Fix("forbid-tf32"),)
    assert finding.remedies[0].commands[0] == "export NVIDIA_TF32_OVERRIDE=0"


def test_what_a_variable_explains_is_advice() -> None:
    environment = allowing("NVIDIA_TF32_OVERRIDE")
    (finding,) = run_check(CHECK, torch_runtime=SURPRISED, environment=environment).findings
    assert finding.severity is Severity.INFO
    assert [evidence.value for evidence in finding.evidence] == [3e-4, "1"]
    assert finding.fixes == (Fix("unset-variable", name="NVIDIA_TF32_OVERRIDE"), Fix("forbid-tf32"))


@pytest.mark.parametrize(
    ("torch", "devices", "outcome"),
    [
        pytest.param(release("1.10.1+cu111"), device(8), Outcome.FOUND, id="on by default"),
        pytest.param(release("1.7.0"), device(8), Outcome.FOUND, id="first release"),
        pytest.param(release("1.6.0"), device(8), Outcome.SKIPPED, id="before TF32"),
        pytest.param(release("1.12.0"), device(8), Outcome.SKIPPED, id="off by default"),
        pytest.param(release("1.10.1"), device(7), Outcome.PASSED, id="no TF32 on the device"),
        pytest.param(
            Torch(version=PackageVersion("1.10.1+cpu"), build="cpu"), device(8), Outcome.SKIPPED, id="CPU build"
        ),
    ],
)
def test_releases_that_allow_it_by_default(torch: Torch, devices: tuple[Device, ...], outcome: Outcome) -> None:
    assert run_check(CHECK, torch=torch, devices=devices).outcome is outcome


def test_the_default_is_advice_as_long_as_no_results_differ() -> None:
    (healthy,) = run_check(CHECK, torch=release("1.10.1+cu111"), devices=device(8)).findings
    (unknown,) = run_check(CHECK, torch=release("1.10.1+cu111")).findings
    (differs,) = run_check(CHECK, torch=release("1.10.1+cu111"), devices=device(8), symptoms=(DIFFERS,)).findings
    assert [finding.severity for finding in (healthy, unknown, differs)] == [
        Severity.INFO,
        Severity.INFO,
        Severity.WARNING,
    ]
    assert healthy.facts == ("torch.version",)
    assert healthy.fixes == (Fix("switch-tf32-off"), Fix("forbid-tf32"))


def test_an_old_release_in_which_it_was_switched_off_passes() -> None:
    runtime = working(L4, version=PackageVersion("1.10.1+cu111"), matmul_tf32=False)
    assert run_check(CHECK, torch_runtime=runtime).outcome is Outcome.PASSED


@pytest.mark.parametrize(
    ("runtime", "reason"),
    [
        (working(precision_results=None), "torch_runtime.precision_results is unknown"),
        (working(available=False), "PyTorch can use no GPU here"),
        (None, "torch_runtime.precision_results is unknown"),
    ],
)
def test_what_cannot_be_determined_is_skipped(runtime: TorchRuntime | None, reason: str) -> None:
    result = run_check(CHECK, torch_runtime=runtime)
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, reason)


def said(kind: str, text: str = "as printed", **names: str) -> Symptom:
    return Symptom(kind=kind, text=text, names=names)


DIFFERS = Symptom(kind="numerical-difference", text="numerical errors")


def test_results_that_differ_make_the_default_of_an_old_release_a_warning() -> None:
    torch = Torch(installed=True, build="cuda", version=PackageVersion("1.10.1"))
    (advice,) = run_check(CHECK, torch=torch, symptoms=()).findings
    (finding,) = run_check(CHECK, torch=torch, symptoms=(DIFFERS,)).findings
    assert (advice.severity, finding.severity) == (Severity.INFO, Severity.WARNING)


def test_a_newer_release_is_found_if_the_report_speaks_of_tf32() -> None:
    named = said("gpu-named-ampere", "RTX 3090")
    spoken = said("tf32-mentioned", "TF32")
    (finding,) = run_check(CHECK, symptoms=(DIFFERS, named, spoken)).findings
    assert finding.severity is Severity.WARNING
    assert finding.facts == ("symptoms[0].text", "symptoms[1].text", "symptoms[2].text")
    assert run_check(CHECK, symptoms=(DIFFERS, named)).outcome is Outcome.SKIPPED


def test_a_comparison_with_a_device_without_tf32_is_enough() -> None:
    named, product = said("gpu-named-ampere", "RTX 3090"), said("float32-product-mentioned", "matmul")
    other = said("compared-with-another-device", "GTX 1080 Ti")
    (finding,) = run_check(CHECK, symptoms=(DIFFERS, named, product, other)).findings
    assert finding.severity is Severity.WARNING
    assert finding.facts == ("symptoms[0].text", "symptoms[1].text", "symptoms[2].text", "symptoms[3].text")
    assert run_check(CHECK, symptoms=(DIFFERS, named, product)).outcome is Outcome.SKIPPED
    assert run_check(CHECK, symptoms=(DIFFERS, product, other)).outcome is Outcome.SKIPPED
