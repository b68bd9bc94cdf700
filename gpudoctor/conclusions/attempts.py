"""Commands that the user already ran or cannot run."""

from gpudoctor.model import Attempts
from gpudoctor.symptoms import Symptoms, of_kind
from gpudoctor.symptoms.tables import row_of


def attempts(symptoms: Symptoms) -> Attempts:
    """Return the commands that a report says were run or cannot be run."""
    rows = (row_of(symptom.kind) for symptom in of_kind(symptoms, "tried-*"))
    return Attempts(commands=tuple(row.tried for row in rows if row is not None and row.tried))
