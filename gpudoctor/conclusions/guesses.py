"""Findings that people's words suggest if no message and no fact decides."""

from dataclasses import replace

from gpudoctor.model import Finding
from gpudoctor.symptoms import Symptoms, of_kind
from gpudoctor.symptoms.answers import finding_of
from gpudoctor.symptoms.tables import row_of


def guess_of(symptoms: Symptoms) -> Finding | None:
    """Return the first finding that people's words suggest, in the order of the tables, with the id of its check.

    None if they suggest nothing, or the report ends with an error, which people's words do not explain.
    """
    rows = [(row, symptom) for symptom in symptoms or () if (row := row_of(symptom.kind)) and row.guess]
    if not rows or of_kind(symptoms, "unknown-error"):
        return None
    row, symptom = rows[0]
    guess = {"severity": "warning", "certain": False, **row.guess}
    return replace(finding_of(guess, symptom, row.says), check_id=guess["check"])
