"""Findings that people's words suggest if no message and no fact decides."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from gpudoctor.data.tables import load_table
from gpudoctor.model import Finding, Fix, Resemblance, Severity
from gpudoctor.symptoms import Symptoms, of_kind
from gpudoctor.symptoms.answers import finding_of
from gpudoctor.symptoms.tables import row_of


class Needed(NamedTuple):
    """What words must show before they name a cause."""

    share: float
    """How probable the cause is among all causes."""
    times: float
    """How many times as probable it is as what a check found, or as a machine on which nothing is wrong."""
    words: int
    """How many words of the report are known. With fewer words the share must be SURE."""


IF_NOTHING_FOUND = Needed(share=0.15, times=20, words=15)
BEHIND_A_FINDING = Needed(share=0.3, times=10, words=20)
SURE = 0.7
LEAST_WORDS = 5
"""Known words that a report must have in any case."""

ENGLISH = frozenset({"the", "is", "it", "to", "my", "and"})
"""A description in English has at least one of these words. In other languages few complaints are recognised."""

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
    resemblance: Resemblance, words: tuple[str, ...] | None, features: frozenset[str], found: str = ""
) -> Finding | None:
    """Return the cause of the confirmed reports whose words this report resembles, with the id of its check.

    None if the report is short, the cause is not probable enough by itself and compared with what a check found
    (with a machine on which nothing is wrong, if nothing was found), or the features of the report exclude it.
    """
    cause, share = next(iter(resemblance.shares.items()), ("", 0.0))
    row: Mapping[str, Any] = next((row for row in load_table("possible_causes")["causes"] if row["check"] == cause), {})
    needed = BEHIND_A_FINDING if found else IF_NOTHING_FOUND
    known = len(words or ())
    least = needed.share if known >= needed.words else SURE
    if known < LEAST_WORDS or share < max(least, needed.times * resemblance.shares.get(found, 0.0)):
        return None
    if not row or not features.isdisjoint(row.get("excluded_by", ())):
        return None
    return Finding(
        check_id=cause,
        severity=Severity.WARNING,
        summary=row["probably"],
        facts=("resemblance.words",),
        certain=False,
        fixes=tuple(Fix(fix["fix"], **{name: fix[name] for name in fix if name != "fix"}) for fix in row["fixes"]),
    )


def may_be_well(words: tuple[str, ...] | None, features: frozenset[str], symptoms: Symptoms) -> bool:
    """Return whether the report complains of nothing, or shows that a program uses the GPU."""
    complains = "error" in features or of_kind(symptoms, *COMPLAINTS) or ENGLISH.isdisjoint(words or ())
    return not complains or any(feature.startswith(USED) for feature in features)
