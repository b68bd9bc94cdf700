"""The causes that fit what is known, most frequent first."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping
from functools import cache
from typing import Any, NamedTuple

from gpudoctor.data.tables import load_table
from gpudoctor.model.report import PossibleCause

MOST = 3
SMOOTHING = 0.3
"""Added to each count, so that a feature that was never seen with a cause makes it rare, not impossible."""


class Counts(NamedTuple):
    """How often each cause was confirmed, and how often each feature was there with it."""

    causes: Counter[str]
    features: Mapping[str, Counter[str]]
    known: frozenset[str]


def possible_causes(features: frozenset[str], excluded: Collection[str] = ()) -> tuple[PossibleCause, ...]:
    """Return the causes that are most frequent among confirmed reports with such features.

    excluded: ids of checks that cannot be the cause.
    """
    rows = {row["check"]: row for row in load_table("possible_causes")["causes"]}
    fitting = [name for name, row in rows.items() if name not in excluded and _fits(row, features)]
    counts = _counts()
    ranked = sorted(fitting, key=lambda name: -_score(name, features, counts))
    return tuple(
        PossibleCause(check=name, why=rows[name]["why"], confirm=rows[name]["confirm"]) for name in ranked[:MOST]
    )


def _fits(row: Mapping[str, Any], features: frozenset[str]) -> bool:
    """Return whether the cause is possible: it has what it needs ("a|b" is either), and nothing excludes it."""
    needed = all(any(option in features for option in item.split("|")) for item in row.get("needs", ()))
    return needed and not any(item in features for item in row.get("excluded_by", ()))


def _score(cause: str, features: frozenset[str], counts: Counts) -> float:
    """Return the logarithm of how probable the cause is, features taken as independent (naive Bayes)."""
    total = counts.causes[cause]
    score = math.log(total + SMOOTHING)
    for feature in counts.known:
        share = (counts.features[cause][feature] + SMOOTHING) / (total + 2 * SMOOTHING)
        score += math.log(share if feature in features else 1 - share)
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
    for row in load_table("possible_causes")["causes"]:
        with_features.setdefault(row["check"], Counter())
    return Counts(causes, with_features, frozenset(seen))
