"""numpy-abi-mismatch."""

import pytest

from gpudoctor.model import Outcome, PackageVersion, Severity, Symptom, Torch
from gpudoctor.testing import run_check

CHECK = "numpy-abi-mismatch"
COMPILED = Symptom(kind="numpy-compiled-for-1", text="cannot be run in NumPy 2.1.3", names={"numpy": "2.1.3"})
UNAVAILABLE = Symptom(kind="numpy-not-available", text="Numpy is not available")


def test_a_module_for_numpy_1_is_a_warning_with_both_ways_out() -> None:
    (finding,) = run_check(CHECK, symptoms=(COMPILED,)).findings
    assert finding.severity is Severity.WARNING
    assert "2.1.3" in finding.summary
    assert finding.remedies[0].commands[0] == "python -m pip install 'numpy<2'"
    assert "PyTorch 2.3" in finding.remedies[1].summary


def test_pytorch_without_numpy_is_an_error_and_names_an_old_pytorch() -> None:
    torch = Torch(installed=True, version=PackageVersion("2.1.0"))
    (finding,) = run_check(CHECK, symptoms=(COMPILED, UNAVAILABLE), torch=torch).findings
    assert finding.severity is Severity.ERROR
    assert [evidence.value for evidence in finding.evidence] == ["Numpy is not available", "2.1.0"]
    assert "Update PyTorch to 2.3" in finding.remedies[1].summary


@pytest.mark.parametrize(
    ("version", "facts"),
    [
        ("2.2.2", ("symptoms[0].text", "torch.version")),
        ("2.3.0", ("symptoms[0].text",)),
        ("2.4.0", ("symptoms[0].text",)),
    ],
)
def test_pytorch_before_2_3_is_evidence(version: str, facts: tuple[str, ...]) -> None:
    torch = Torch(installed=True, version=PackageVersion(version))
    (finding,) = run_check(CHECK, symptoms=(UNAVAILABLE,), torch=torch).findings
    assert finding.facts == facts


def test_cupy_has_a_check_of_its_own() -> None:
    result = run_check(CHECK, symptoms=(COMPILED, Symptom(kind="cupy-named", text="cupy")))
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, "the report is about CuPy")


def test_another_message_is_not_its_question() -> None:
    result = run_check(CHECK, symptoms=(Symptom(kind="bnb-broken", text="broken"),))
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, "no message reports this problem")
