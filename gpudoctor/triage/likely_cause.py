"""The likely cause of a report, from people's words and from what the checks found."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from gpudoctor.data.tables import load_table
from gpudoctor.model import Finding, Fix, Resemblance, Severity
from gpudoctor.symptoms import Symptoms, of_kind
from gpudoctor.symptoms.answers import finding_of
from gpudoctor.symptoms.tables import row_of
from gpudoctor.triage.features import fits

CERTAIN, UNCERTAIN = 60.0, 7.0
"""How many times as probable a cause is if a check found it for certain, or concluded it from something likely."""

GUESSED = 4.5
"""How many times as probable a cause is if people's words suggest it by a row of the tables."""

NOT_SHOWN = 0.45
"""How many times as probable a cause is if the report shows nothing of what it usually needs."""

LEAST_SHARE = 0.005
"""The share of a cause that the words say nothing of."""


class Needed(NamedTuple):
    """What words must show before they name a cause if no check found one."""

    share: float
    """How probable the cause is, among all causes."""
    well: float
    """How probable it may be, at most, that nothing is wrong."""


WITH_EFFECT = Needed(share=0.15, well=1.0)
WITH_GUESS = Needed(share=0.15, well=0.7)
WITH_ERROR = Needed(share=0.5, well=0.75)
WITH_COMPLAINT = Needed(share=0.5, well=0.15)
WITH_UNKNOWN_ERROR = Needed(share=0.8, well=0.15)
"""In 56 of 1,100 new reports no check and no row named a cause and words showed half: 44 times the right cause."""

LEAST_WORDS = 15
"""Known words without which words say nothing."""

USED = ("symptom:gpu-used-by", "symptom:gpu-listed-by", "symptom:layers-on-gpu")
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


def by_words(resemblance: Resemblance, words: tuple[str, ...] | None) -> Mapping[str, float]:
    """Return how probable the words make each cause; nothing of a text with few words."""
    return resemblance.shares if len(words or ()) >= LEAST_WORDS else {}


def likeliest(shares: Mapping[str, float], features: frozenset[str], found: Mapping[str, float]) -> tuple[str, float]:
    """Return the most probable cause of a report, and its share by the words alone; ("", 0) if there is none.

    found: check id → how many times as probable the cause is because of what else is known. The factors were chosen
    with 1,100 reports that nobody had seen when the checks were made (2026-11-29).
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


def needed(
    symptoms: Symptoms, words: tuple[str, ...] | None, features: frozenset[str], *, effect: bool, guessed: bool
) -> Needed | None:
    """Return what words must show before they name a cause.

    None if the report complains of nothing, or shows that a program uses the GPU.
    effect: a check found that the GPU is not used. guessed: people's words suggest a cause.
    """
    if any(feature.startswith(USED) for feature in features) and not (effect or guessed):
        return None
    foreign = any(not word.isascii() for word in words or ())  # in which few complaints are recognised
    complains = foreign or of_kind(symptoms, *COMPLAINTS)
    signs = {
        WITH_EFFECT: effect,
        WITH_GUESS: guessed,
        WITH_UNKNOWN_ERROR: bool(of_kind(symptoms, "unknown-error")),
        WITH_ERROR: "error" in features,
        WITH_COMPLAINT: bool(complains),
    }
    return next((demand for demand, shown in signs.items() if shown), None)
