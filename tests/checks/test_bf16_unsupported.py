"""bf16-unsupported."""

import pytest

from gpudoctor.model import ComputeCapability, Device, Fix, Outcome, Severity, Symptom, TorchRuntime
from gpudoctor.testing import run_check
from tests.torch_runtimes import GTX_1080, GTX_1660, L4, T4, with_result, working

CHECK = "bf16-unsupported"
REFUSED = "ValueError: Bfloat16 is only supported on GPUs with compute capability of at least 8.0. Your GPU has 7.5."


def device(capability: ComputeCapability | None) -> tuple[Device, ...]:
    return (Device(nvml_index=0, name="GPU", compute_capability=capability),)


@pytest.mark.parametrize(
    ("runtime", "devices", "outcome", "reason"),
    [
        pytest.param(working(T4), None, Outcome.FOUND, "", id="7.5"),
        pytest.param(working(L4), None, Outcome.PASSED, "", id="8.9"),
        pytest.param(None, device(ComputeCapability(7, 0)), Outcome.FOUND, "", id="NVML alone"),
        pytest.param(
            None, (Device(nvml_index=0, name="Tesla V100-SXM2-32GB"),), Outcome.FOUND, "", id="by the product"
        ),
        pytest.param(None, device(ComputeCapability(8, 0)), Outcome.PASSED, "", id="8.0"),
        pytest.param(None, device(ComputeCapability(99, 0)), Outcome.PASSED, "", id="newer than the table"),
        pytest.param(
            None,
            device(ComputeCapability(3, 5)),
            Outcome.SKIPPED,
            "whether the device supports bf16 is unknown",
            id="not verified",
        ),
        pytest.param(
            None, device(None), Outcome.SKIPPED, "whether the device supports bf16 is unknown", id="capability unknown"
        ),
        pytest.param(None, (), Outcome.SKIPPED, "there is no NVIDIA GPU", id="no GPU"),
        pytest.param(
            working(T4, available=False), None, Outcome.SKIPPED, "PyTorch can use no GPU here", id="no usable GPU"
        ),
        pytest.param(
            None, None, Outcome.SKIPPED, "torch_runtime.device_capabilities is unknown", id="nothing is known"
        ),
    ],
)
def test_outcome(
    runtime: TorchRuntime | None, devices: tuple[Device, ...] | None, outcome: Outcome, reason: str
) -> None:
    result = run_check(CHECK, torch_runtime=runtime, devices=devices)
    assert (result.outcome, result.reason) == (outcome, reason)


def test_emulation_is_advice_with_both_capabilities() -> None:
    (finding,) = run_check(CHECK, torch_runtime=working(T4, L4, T4)).findings
    assert finding.severity is Severity.INFO
    assert finding.summary == (
        "2 x Tesla T4 (compute capability 7.5) computes bf16 in float32; native bf16 starts at compute capability 8.0"
    )
    assert finding.fixes == (Fix("use-float16"), Fix("use-float32"))


def test_a_program_that_was_refused_makes_it_an_error() -> None:
    runtime = with_result(working(T4), "bf16", relative_error=None, error=REFUSED)
    (finding,) = run_check(CHECK, torch_runtime=runtime).findings
    assert finding.severity is Severity.ERROR
    assert [evidence.value for evidence in finding.evidence] == [REFUSED, "7.5"]


def test_a_refusal_counts_without_any_device() -> None:
    warning = "RuntimeError: Current CUDA Device does not support bfloat16. Please switch dtype to float16."
    (finding,) = run_check(CHECK, torch_runtime=TorchRuntime(warnings=(warning,))).findings
    assert finding.severity is Severity.ERROR
    assert finding.facts == ("torch_runtime.warnings[0]",)
    assert finding.fixes[0] == Fix("use-float16")


@pytest.mark.parametrize("gpu", [GTX_1080, GTX_1660], ids=["slow fp16", "faulty fp16"])
def test_fp16_is_not_advised_if_it_is_slow_or_faulty(gpu: tuple[str, str]) -> None:
    (finding,) = run_check(CHECK, torch_runtime=working(gpu)).findings
    assert finding.fixes == (Fix("use-float32"), Fix("save-memory-with-float16"))


def said(kind: str, text: str, **names: str) -> tuple[Symptom, ...]:
    return (Symptom(kind=kind, text=text, names=names),)


def test_a_refusal_in_a_report_names_the_device() -> None:
    text = "Bfloat16 is only supported on GPUs with compute capability of at least 8.0"
    finding = run_check(
        CHECK, symptoms=said("bf16-device-refused", text), devices=device(ComputeCapability(7, 0))
    ).findings[0]
    assert finding.severity is Severity.ERROR
    assert [evidence.value for evidence in finding.evidence] == [text, "7.0"]
    assert finding.fixes[0] == Fix("use-float16")


def test_a_refusal_on_a_device_with_bf16_is_of_pytorch() -> None:
    symptoms = said("bf16-setup-refused", "Your setup doesn't support bf16/gpu")
    finding = run_check(CHECK, symptoms=symptoms, devices=device(ComputeCapability(8, 6))).findings[0]
    assert finding.severity is Severity.WARNING
    assert finding.facts == ("symptoms[0].text", "devices[0].compute_capability")
    assert finding.fixes == (Fix("check-torch-for-bf16"),)
    assert "torch.cuda.is_available()" in finding.remedies[0].commands[0]


def test_an_operator_without_a_kernel_is_no_refusal_of_the_device() -> None:
    symptoms = said("bf16-kernel-missing", "not implemented for 'BFloat16'", operator="triu_tril_cuda_template")
    finding = run_check(CHECK, symptoms=symptoms, devices=device(ComputeCapability(8, 6))).findings[0]
    assert (finding.severity, finding.subject) == (Severity.ERROR, "triu_tril_cuda_template")
    assert finding.remedies[0].summary.startswith("Update PyTorch")


def test_a_report_of_something_else_passes() -> None:
    symptoms = said("tf32-mentioned", "TF32")
    result = run_check(CHECK, symptoms=symptoms, devices=device(ComputeCapability(8, 0)))
    assert result.outcome is Outcome.PASSED
