"""tf32-api-mixed."""

from gpudoctor.model import Outcome, Severity, Symptom
from gpudoctor.testing import run_check

CHECK = "tf32-api-mixed"
MIXED = Symptom(kind="tf32-mixed-api", text="mix of the legacy and new APIs to set the TF32 status")
DEPRECATED = Symptom(kind="tf32-api-deprecated", text="Please use the new API settings to control TF32 behavior")


def test_both_switches_in_one_program_are_an_error() -> None:
    (finding,) = run_check(CHECK, symptoms=(DEPRECATED, MIXED)).findings
    assert finding.severity is Severity.ERROR
    assert finding.facts == ("symptoms[1].text",)
    assert "fp32_precision" in finding.remedies[0].summary


def test_the_warning_alone_is_advice() -> None:
    (finding,) = run_check(CHECK, symptoms=(DEPRECATED,)).findings
    assert finding.severity is Severity.INFO


def test_another_message_is_not_its_question() -> None:
    result = run_check(CHECK, symptoms=(Symptom(kind="tf32-mentioned", text="TF32"),))
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, "no message reports this problem")
