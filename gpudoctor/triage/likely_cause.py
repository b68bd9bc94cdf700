"""The likely cause of a report, from people's words and from what the checks found."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from gpudoctor.data.tables import load_table
from gpudoctor.model import Finding, Fix, Resemblance, Severity
from gpudoctor.symptoms import Symptoms, of_kind
from gpudoctor.symptoms.answers import finding_of
from gpudoctor.symptoms.tables import row_of
from gpudoctor.triage.features import fits

CERTAIN, UNCERTAIN = 40.0, 7.0
"""How many times as probable a cause is if a check found it for certain, or concluded it from something likely."""

GUESSED = 4.5
"""How many times as probable a cause is if people's words suggest it by a row of the tables."""

NOT_SHOWN = 0.45
"""How many times as probable a cause is if the report shows nothing of what it usually needs."""

LEAST_SHARE = 0.005
"""The share of a cause that the words say nothing of."""


LEAST_NAMED, LEAST_OF_UNKNOWN_ERROR = 0.5, 0.8
"""How probable words must make a cause before they name it if no check found one; and if an error is not known."""

MOST_WELL = 0.3
"""How probable it may be, at most, that the author has no fault, if words alone name a cause."""

LEAST_WORDS = 15
"""Known words without which words say nothing."""

USED = ("symptom:gpu-used-by", "symptom:gpu-listed-by", "symptom:layers-on-gpu")
MISSED = ("asks:tensorflow-list-empty", "asks:false-elsewhere")
COMPLAINTS = (
    *("asks-trouble", "asks-failure", "asks-gpu-unused", "asks-complaint", "asks-slow", "asks-hang"),
    *("asks-cpu-used", "unknown-error"),
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


def by_words(resemblance: Resemblance) -> Mapping[str, float]:
    """Return how probable the words make each cause; nothing of a text with few words."""
    return resemblance.shares if resemblance.known >= LEAST_WORDS else {}


def likeliest(shares: Mapping[str, float], features: frozenset[str], found: Mapping[str, float]) -> tuple[str, float]:
    """Return the most probable cause of a report, and its share by the words alone; ("", 0) if there is none.

    found: check id → how many times as probable the cause is because of what else is known. The factors were chosen
    with 1,100 reports that nobody had seen when the checks were made. Of 1,647 others, CERTAIN from 8 to 60 changes the
    cause of 0.3 % at most (2026-11-29).
    """
    rows = {row["check"]: row for row in load_table("possible_causes")["causes"]}
    weights = {cause: LEAST_SHARE * times for cause, times in found.items()}
    for cause, share in shares.items():
        if cause in rows or cause in found:
            shown = cause in found or fits(features, rows[cause].get("needs", ()), ())
            weights[cause] = (share + LEAST_SHARE) * found.get(cause, 1.0) * (1.0 if shown else NOT_SHOWN)
    possible = [c for c in weights if c in found or features.isdisjoint(rows[c].get("excluded_by", ()))]
    best = max(possible, key=lambda cause: weights[cause], default="")
    return best, shares.get(best, 0.0)


def probable(cause: str) -> Finding:
    """Return the finding that this is the cause, as the words of the report suggest, with the id of its check."""
    row: Mapping[str, Any] = next(row for row in load_table("possible_causes")["causes"] if row["check"] == cause)
    return Finding(
        check_id=cause,
        severity=Severity.WARNING,
        summary=row["probably"],
        facts=("resemblance.words",),
        certain=False,
        fixes=tuple(Fix(fix["fix"], **{name: fix[name] for name in fix if name != "fix"}) for fix in row["fixes"]),
    )


def least_named(symptoms: Symptoms) -> float:
    """Return how probable words must make a cause before they name it."""
    return LEAST_OF_UNKNOWN_ERROR if of_kind(symptoms, "unknown-error") else LEAST_NAMED


def uses_gpu(features: frozenset[str]) -> bool:
    """Return whether a report shows that a program uses the GPU, and no other one that misses it."""
    return any(feature.startswith(USED) for feature in features) and features.isdisjoint(MISSED)


def complains(symptoms: Symptoms, words: tuple[str, ...] | None, features: frozenset[str]) -> bool:
    """Return whether a report has an error or a complaint. Few complaints are recognised in other languages."""
    is_foreign = any(not word.isascii() for word in words or ())
    return "error" in features or is_foreign or bool(of_kind(symptoms, *COMPLAINTS))
