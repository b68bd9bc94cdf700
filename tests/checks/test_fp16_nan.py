"""fp16-nan."""

import pytest

from gpudoctor.model import Device, Fix, Outcome, Severity, Symptom, TorchRuntime
from gpudoctor.testing import run_check
from tests.torch_runtimes import GTX_1660, L4, T4, with_result, working

CHECK = "fp16-nan"
WITHOUT_FP16 = (Fix("switch-mixed-precision-off"), Fix("try-cudnn-benchmark-against-nan"))
NOT_FINITE = "not finite: 12 of 65536 values"
OVERFLOWING = with_result(working(T4), "fp16", relative_error=None, error=NOT_FINITE)


@pytest.mark.parametrize(
    ("runtime", "devices", "outcome", "reason"),
    [
        pytest.param(OVERFLOWING, None, Outcome.FOUND, "", id="NaN in fp16 alone"),
        pytest.param(
            with_result(OVERFLOWING, "fp32", relative_error=None, error=NOT_FINITE),
            None,
            Outcome.PASSED,
            "",
            id="NaN in fp32 too is torch-wrong-results",
        ),
        pytest.param(
            with_result(working(T4), "fp16", relative_error=None, error="RuntimeError: no"),
            None,
            Outcome.PASSED,
            "",
            id="an exception is no NaN",
        ),
        pytest.param(working(L4), None, Outcome.PASSED, "", id="right"),
        pytest.param(working(GTX_1660), None, Outcome.FOUND, "", id="known for it"),
        pytest.param(None, (Device(nvml_index=0, name=GTX_1660[0]),), Outcome.FOUND, "", id="known for it, by NVML"),
        pytest.param(
            None,
            (Device(nvml_index=0, name="NVIDIA L4"),),
            Outcome.SKIPPED,
            "torch_runtime.precision_results is unknown",
            id="products not tried",
        ),
        pytest.param(
            working(precision_results=()), None, Outcome.SKIPPED, "PyTorch has no GPU to compute on", id="no products"
        ),
        pytest.param(
            working(GTX_1660, available=False), None, Outcome.SKIPPED, "PyTorch can use no GPU here", id="no usable GPU"
        ),
    ],
)
def test_outcome(
    runtime: TorchRuntime | None, devices: tuple[Device, ...] | None, outcome: Outcome, reason: str
) -> None:
    result = run_check(CHECK, torch_runtime=runtime, devices=devices)
    assert (result.outcome, result.reason) == (outcome, reason)


def test_what_was_measured_is_a_warning() -> None:
    (finding,) = run_check(CHECK, torch_runtime=OVERFLOWING).findings
    assert finding.severity is Severity.WARNING
    assert finding.evidence[0].value == NOT_FINITE
    assert finding.fixes == WITHOUT_FP16


def test_what_is_only_known_of_the_series_is_advice() -> None:
    (finding,) = run_check(CHECK, torch_runtime=working(GTX_1660)).findings
    assert (finding.severity, finding.fixes) == (Severity.INFO, WITHOUT_FP16)
    assert finding.evidence[0].fact == "torch_runtime.device_names[0]"


def test_a_device_of_the_series_that_gives_nan_has_one_finding() -> None:
    runtime = with_result(working(GTX_1660), "fp16", relative_error=None, error=NOT_FINITE)
    (finding,) = run_check(CHECK, torch_runtime=runtime).findings
    assert finding.severity is Severity.WARNING


def said(kind: str, text: str = "as printed", **names: str) -> Symptom:
    return Symptom(kind=kind, text=text, names=names)


@pytest.mark.parametrize(
    "kind",
    ["fp16-nan-tensor", "fp16-no-half-hint", "fp16-overflow-constant", "fp16-loss-scale-exhausted", "fp16-image-cast"],
)
def test_a_conclusive_message_is_an_error(kind: str) -> None:
    finding = run_check(CHECK, symptoms=(said(kind),)).findings[0]
    assert (finding.severity, finding.certain) == (Severity.ERROR, True)
    assert finding.fixes[-1] == WITHOUT_FP16[0]


def test_a_nan_loss_on_a_gtx_16_is_an_error() -> None:
    devices = (Device(nvml_index=0, name="NVIDIA GeForce GTX 1660Ti"),)
    finding = run_check(CHECK, symptoms=(said("loss-nan", "loss is NaN"),), devices=devices).findings[0]
    assert finding.severity is Severity.ERROR
    assert finding.summary == (
        "Results are NaN or infinite on NVIDIA GeForce GTX 1660Ti, a known problem of its fp16 convolutions: "
        '"loss is NaN"'
    )
    assert finding.fixes == WITHOUT_FP16


def test_a_nan_loss_with_half_precision_is_a_warning_and_bf16_is_advised_if_it_is() -> None:
    symptoms = (said("loss-nan"), said("half-precision-in-use", "fp16"))
    finding = run_check(CHECK, symptoms=symptoms, devices=(Device(nvml_index=0, name="Tesla V100"),)).findings[0]
    assert (finding.severity, finding.certain) == (Severity.WARNING, False)
    assert Fix("use-bf16") not in finding.fixes
    finding = run_check(CHECK, symptoms=symptoms, devices=(Device(nvml_index=0, name="NVIDIA A100"),)).findings[0]
    assert finding.fixes[0] == Fix("use-bf16")


def test_a_detector_that_finds_nothing_counts_on_such_a_device_alone() -> None:
    nothing = said("no-detections", "mAP 0")
    assert run_check(CHECK, symptoms=(nothing, said("gpu-named-gtx-16", "GTX 1650"))).outcome is Outcome.FOUND
    assert run_check(CHECK, symptoms=(nothing, said("amp-by-default", "YOLOv8"))).outcome is Outcome.SKIPPED


def test_a_nan_loss_alone_has_other_causes() -> None:
    result = run_check(CHECK, symptoms=(said("loss-nan"),))
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, "torch_runtime.precision_results is unknown")


def test_an_overflow_of_the_gradients_counts_with_a_nan_alone() -> None:
    overflow = said("fp16-gradient-overflow", "Gradient overflow")
    (finding,) = run_check("fp16-nan", symptoms=(overflow, said("nan-in-tensor", "NaN or Inf found"))).findings
    assert finding.severity is Severity.WARNING
    assert run_check("fp16-nan", symptoms=(overflow,)).outcome is Outcome.SKIPPED


def test_exclamation_marks_count_on_such_a_device_alone() -> None:
    marks, device = said("exclamation-marks", "!" * 20), said("gpu-named-gtx-16", "GTX 1660")
    assert run_check("fp16-nan", symptoms=(marks, device)).outcome is Outcome.FOUND
    assert run_check("fp16-nan", symptoms=(marks,)).outcome is Outcome.SKIPPED
