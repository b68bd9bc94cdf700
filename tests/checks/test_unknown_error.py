"""An error that no row of the table of failure messages knows."""

from gpudoctor.model import Outcome, Severity, Symptom
from gpudoctor.testing import run_check

ERROR = Symptom(kind="unknown-error", text="StrangeError: the flux is inverted", names={"error": "StrangeError"})


def test_the_error_is_shown_as_advice() -> None:
    finding = run_check("unknown-error", symptoms=(ERROR,)).findings[0]
    assert finding.severity is Severity.INFO
    assert finding.summary.endswith("does not know: StrangeError: the flux is inverted")
    assert finding.subject == "StrangeError"


def test_a_long_error_is_cut() -> None:
    long = Symptom(kind="unknown-error", text="StrangeError: " + "x" * 400)
    assert len(run_check("unknown-error", symptoms=(long,)).findings[0].summary) < 300


def test_known_messages_are_none() -> None:
    result = run_check("unknown-error", symptoms=(Symptom(kind="torch-no-driver", text=""),))
    assert (result.outcome, result.applicable) == (Outcome.SKIPPED, False)


def test_a_live_machine_has_no_messages() -> None:
    assert run_check("unknown-error").outcome is Outcome.SKIPPED
