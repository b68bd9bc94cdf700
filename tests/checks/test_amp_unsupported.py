import pytest

from gpudoctor.model import ComputeCapability, Device, Fix, Outcome, Severity, Symptom
from gpudoctor.testing import run_check


def device(capability: str | None, name: str = "GPU") -> Device:
    return Device(
        nvml_index=0, name=name, compute_capability=ComputeCapability.parse(capability) if capability else None
    )


@pytest.mark.parametrize(
    ("capability", "name", "outcome"),
    [
        pytest.param("6.1", "GeForce GTX 1080 Ti", Outcome.FOUND, id="Pascal, slow fp16"),
        pytest.param("5.2", "GeForce GTX 970", Outcome.FOUND, id="Maxwell"),
        pytest.param("6.0", "Tesla P100", Outcome.PASSED, id="no tensor cores, fast fp16"),
        pytest.param("7.0", "Tesla V100", Outcome.PASSED, id="first tensor cores"),
        pytest.param("7.5", "NVIDIA GeForce RTX 2080", Outcome.PASSED, id="Turing with tensor cores"),
        pytest.param("7.5", "NVIDIA GeForce GTX 1650", Outcome.FOUND, id="Turing without"),
        pytest.param("7.5", "NVIDIA T1000", Outcome.FOUND, id="professional Turing without"),
        pytest.param("7.5", "Tesla T4", Outcome.PASSED, id="T4 is not T400"),
        pytest.param("8.6", "NVIDIA RTX A2000", Outcome.PASSED, id="Ampere"),
    ],
)
def test_outcome(capability: str, name: str, outcome: Outcome) -> None:
    assert run_check("amp-unsupported", devices=(device(capability, name),)).outcome is outcome


def test_it_is_advice_with_capability_and_rate() -> None:
    (finding,) = run_check("amp-unsupported", devices=(device("6.1", "GTX 1080"),) * 2).findings
    assert finding.severity is Severity.INFO
    assert finding.summary == "GPU 0 (GTX 1080) has no tensor cores (compute capability 6.1, fp16 slow)"


@pytest.mark.parametrize(
    ("unknown", "reason"),
    [
        (device(None, "No Such GPU"), "devices[0].compute_capability is unknown"),
        (device("19.0"), "the tables do not say whether compute capability 19.0 has tensor cores"),
        (device("7.2"), "the tables do not say whether compute capability 7.2 has tensor cores"),
    ],
)
def test_unknown_is_no_pass(unknown: Device, reason: str) -> None:
    result = run_check("amp-unsupported", devices=(unknown,))
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, reason)


def said(kind: str, text: str = "as printed", **names: str) -> Symptom:
    return Symptom(kind=kind, text=text, names=names)


@pytest.mark.parametrize(
    ("message", "severity", "fixes"),
    [
        pytest.param(
            said("half-on-cpu", operator="addmm_impl_cpu_"),
            Severity.ERROR,
            ["run-model-on-gpu", "compute-in-fp32-on-cpu"],
            id="CPU",
        ),
        pytest.param(
            said("half-kernel-missing", operator="cholesky_cuda"),
            Severity.ERROR,
            ["convert-to-float32"],
            id="kernel of CUDA",
        ),
        pytest.param(said("amp-check-failed"), Severity.WARNING, ["turn-off-mixed-precision"], id="Ultralytics"),
        pytest.param(said("fp16-type-refused"), Severity.ERROR, ["turn-off-mixed-precision"], id="DeepSpeed"),
        pytest.param(said("amp-fp16-gradients"), Severity.ERROR, ["train-float32-weights"], id="fp16 weights"),
    ],
)
def test_what_a_report_says_of_a_failure(message: Symptom, severity: Severity, fixes: list[str]) -> None:
    (finding,) = run_check("amp-unsupported", symptoms=(message,)).findings
    assert (finding.severity, finding.facts) == (severity, ("symptoms[0].text",))
    assert [fix.name for fix in finding.fixes] == fixes


def test_no_gain_on_a_named_device_without_tensor_cores_is_a_warning() -> None:
    symptoms = (said("amp-no-gain"), said("gpu-named-without-tensor-cores", "GTX 1080 Ti"))
    (finding,) = run_check("amp-unsupported", symptoms=symptoms).findings
    assert (finding.severity, finding.subject) == (Severity.WARNING, "GTX 1080 Ti")
    assert finding.facts == ("symptoms[0].text", "symptoms[1].text")
    assert finding.fixes == (Fix("compute-in-fp32"),)


def test_no_gain_alone_says_nothing_of_the_device() -> None:
    result = run_check("amp-unsupported", symptoms=(said("amp-no-gain"),))
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, "devices is unknown")
