"""Findings that people's words suggest if no message and no fact decides."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from gpudoctor.data.tables import load_table
from gpudoctor.model import Finding, Fix, Resemblance, Severity
from gpudoctor.symptoms import Symptoms, of_kind
from gpudoctor.symptoms.answers import finding_of
from gpudoctor.symptoms.tables import row_of

LIKELY = 0.5
"""How probable a cause must be by the words of a report, if no check found anything."""

LIKELY_BEHIND, TIMES_FOUND = 0.7, 3
"""How probable it must be to be named as the cause of what a check found, and how many times as probable as that."""

MOST_WELL = 0.08
"""How probable it may be at most that nothing is wrong, in a report that complains."""

ENGLISH = frozenset({"the", "is", "it", "to", "my", "and"})
"""Words of which a description in English has one. In other languages few complaints are recognised."""

LEAST_WORDS, FEW_WORDS, SURER = 5, 15, 0.2
"""Known words that a report must have, how many are few, and how much more probable a cause must be if they are few."""

USED = "symptom:gpu-used-by"
COMPLAINTS = (
    "asks-trouble",
    "asks-failure",
    "asks-gpu-unused",
    "asks-complaint",
    "asks-slow",
    "asks-hang",
    "asks-cpu-used",
)


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


def likely_of(
    resemblance: Resemblance, words: tuple[str, ...] | None, features: frozenset[str], least: float = LIKELY
) -> Finding | None:
    """Return the cause of the confirmed reports whose words this report resembles, with the id of its check.

    None if the report is short, no cause is as probable as `least`, or the features of the report exclude it.
    """
    cause, share = next(iter(resemblance.shares.items()), ("", 0.0))
    row: Mapping[str, Any] = next((row for row in load_table("possible_causes")["causes"] if row["check"] == cause), {})
    known = len(words or ())
    least += SURER if known < FEW_WORDS else 0
    if known < LEAST_WORDS or share < least or not row or not features.isdisjoint(row.get("excluded_by", ())):
        return None
    return Finding(
        check_id=cause,
        severity=Severity.WARNING,
        summary=row["probably"],
        facts=("resemblance.words",),
        certain=False,
        fixes=tuple(Fix(fix["fix"], **{name: fix[name] for name in fix if name != "fix"}) for fix in row["fixes"]),
    )


def may_be_well(
    resemblance: Resemblance, words: tuple[str, ...] | None, features: frozenset[str], symptoms: Symptoms
) -> bool:
    """Return whether the report may be of a machine on which nothing is wrong."""
    complains = "error" in features or of_kind(symptoms, *COMPLAINTS) or ENGLISH.isdisjoint(words or ())
    used = any(feature.startswith(USED) for feature in features)
    return used or not complains or resemblance.shares.get("", 1.0) > MOST_WELL
