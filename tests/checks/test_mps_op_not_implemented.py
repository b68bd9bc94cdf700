"""mps-op-not-implemented."""

import pytest

from gpudoctor.model import Outcome, PrecisionResult, Severity, Symptom, TorchRuntime
from gpudoctor.testing import run_check

CHECK = "mps-op-not-implemented"
OPERATOR = "The operator 'aten::_fft_r2c' is not currently implemented for the MPS device."
LIVE = PrecisionResult(device="mps", precision="fp32", error=OPERATOR)


@pytest.mark.parametrize(
    "sections",
    [
        pytest.param({"torch_runtime": TorchRuntime(availability_error=OPERATOR)}, id="error of PyTorch"),
        pytest.param({"torch_runtime": TorchRuntime(precision_results=(LIVE,))}, id="live"),
        pytest.param(
            {"symptoms": (Symptom(kind="mps-operator-missing", text=OPERATOR, names={"operator": "aten::_fft_r2c"}),)},
            id="report",
        ),
    ],
)
def test_a_missing_operator_is_named(sections: dict[str, object]) -> None:
    finding = run_check(CHECK, **sections).findings[0]
    assert finding.severity is Severity.ERROR
    assert finding.summary == "MPS has no implementation of aten::_fft_r2c"
    assert finding.evidence[0].value == OPERATOR
    assert finding.remedies[0].commands[0] == "export PYTORCH_ENABLE_MPS_FALLBACK=1"
    assert finding.remedies[1].commands[0] == "python -m pip install --upgrade torch torchvision torchaudio"


def test_each_operator_once() -> None:
    symptoms = tuple(
        Symptom(kind="mps-operator-missing", text=OPERATOR, names={"operator": name})
        for name in ("aten::a", "aten::b", "aten::a")
    )
    assert [finding.subject for finding in run_check(CHECK, symptoms=symptoms).findings] == ["aten::a", "aten::b"]


def test_another_message_is_not_its_question() -> None:
    result = run_check(CHECK, symptoms=(Symptom(kind="mps-float64", text="no float64"),))
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, "no operator was missing")
