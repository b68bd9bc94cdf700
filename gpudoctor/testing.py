"""For tests of checks, those of plugins too: run one check on facts written by hand."""

from dataclasses import replace
from typing import Any

from gpudoctor.engine.catalog import load_checks
from gpudoctor.engine.runner import run_one
from gpudoctor.model import CheckResult, Snapshot, Symptom
from gpudoctor.symptoms.facts import with_symptoms
from gpudoctor.symptoms.tables import row_of


def run_check(check_id: str, **sections: Any) -> CheckResult:
    """Return how the check ends on a machine with only `sections` known.

    Symptoms given by hand are those of a pasted report, unless they name the fact they were read from. One without a
    code has that of its row.

    Raises:
        KeyError: there is no such check.
    """
    given = sections.get("symptoms")
    if given is not None:
        sections["symptoms"] = tuple(map(_with_code, given))
        if not any(symptom.fact for symptom in given):
            sections.setdefault("contradictions", ())
    return run_one({check.id: check for check in load_checks()}[check_id], with_symptoms(Snapshot(**sections)))


def _with_code(symptom: Symptom) -> Symptom:
    row = row_of(symptom.kind)
    return symptom if symptom.code or row is None else replace(symptom, code=row.code)
