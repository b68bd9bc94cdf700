"""For tests of checks, those of plugins too: run one check on facts written by hand."""

from __future__ import annotations

from typing import Any

from gpudoctor.engine.catalog import load_checks
from gpudoctor.engine.runner import run_one
from gpudoctor.model import CheckResult, Snapshot
from gpudoctor.symptoms.facts import with_symptoms


def run_check(check_id: str, **sections: Any) -> CheckResult:
    """Return how the check ends on a machine of which only `sections` are known.

    Symptoms given by hand are those of a pasted report, unless they name the fact they were read from.

    Raises:
        KeyError: there is no such check.
    """
    given = sections.get("symptoms")
    if given is not None and not any(symptom.fact for symptom in given):
        sections.setdefault("contradictions", ())
    return run_one({check.id: check for check in load_checks()}[check_id], with_symptoms(Snapshot(**sections)))
