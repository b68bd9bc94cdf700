"""Possible causes that fit the known facts, most frequent first."""

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, NamedTuple

from gpudoctor.data.tables import load_table
from gpudoctor.model.report import PossibleCause
from gpudoctor.triage.features import SYMPTOM, fits

MOST = 3
UNSEEN = 0.5
"""Added to the number of confirmed reports of each cause, so that a new cause is rare, not impossible."""

SUGGESTED = 4.0
"""Added to the log probability of a cause that a word of the report suggests."""

PRIOR_REPORTS = 4
"""Weight of a feature's overall frequency, in reports."""

ALSO = 0.3
"""Weight of a second cause that is an equally good answer to a report."""

ABSENT = 0.3
"""Weight of a missing feature: the silence of a report shows little."""


WORDS, LEAST_SHARE = 3.0, 0.002
"""Weight of what the words of the report say, and the share of a cause that they say nothing of."""


LIKELY = 0.3
"""A cause that the words make this probable is possible without the features that it otherwise needs."""


class Counts(NamedTuple):
    """Reports for each cause, for each feature together with a cause, and for each feature in total."""

    causes: Mapping[str, float]
    features: Mapping[str, Mapping[str, float]]
    shares: Mapping[str, float]


def possible_causes(
    features: frozenset[str],
    excluded: Collection[str] = (),
    *,
    first: Collection[str] = (),
    shares: Mapping[str, float] = MappingProxyType({}),
    only_suggested: bool = False,
) -> tuple[PossibleCause, ...]:
    """Return the most frequent causes of confirmed reports with these features.

    excluded: ids of checks that cannot be the cause. first: ids of those that the text itself speaks of.
    shares: how probable the words of the report make each cause. only_suggested: only causes that a symptom speaks for.
    """
    rows = {row["check"]: row for row in load_table("possible_causes")["causes"]}
    asked = [(name, row) for name, row in rows.items() if name not in excluded]
    needed = {name: row.get("needs", ()) if shares.get(name, 0) < LIKELY else () for name, row in asked}
    fitting = [name for name, row in asked if name in first or fits(features, needed[name], row.get("excluded_by", ()))]
    if only_suggested:
        fitting = [name for name in fitting if name in first or _is_suggested(rows[name], features)]
    suggested = {name: SUGGESTED for name in fitting if not features.isdisjoint(rows[name].get("suggested_by", ()))}
    by_words = {name: WORDS * math.log(shares.get(name, 0.0) + LEAST_SHARE) for name in fitting} if shares else {}
    scores = {name: _score(name, features) + suggested.get(name, 0) + by_words.get(name, 0) for name in fitting}
    ranked = sorted(fitting, key=lambda name: (name not in first, -scores[name]))
    return tuple(
        PossibleCause(check=name, why=rows[name]["why"], confirm=rows[name]["confirm"]) for name in ranked[:MOST]
    )


def _is_suggested(row: Mapping[str, Any], features: frozenset[str]) -> bool:
    needed = [option for item in row.get("needs", ()) for option in item.split("|") if option.startswith(SYMPTOM)]
    return not features.isdisjoint([*row.get("suggested_by", ()), *needed])


def _score(cause: str, features: frozenset[str]) -> float:
    """Return the log probability of the cause, with features taken as independent (naive Bayes).

    Of the 1,241 reports of the table, each ranked by the other nine tenths, the cause is among the first three for
    1,154, and for 183 of the 204 without an error message (2026-11-24).
    """
    without_any, gained = _logarithms(cause)
    return without_any + sum(gained.get(feature, 0.0) for feature in sorted(features))


@cache
def _logarithms(cause: str) -> tuple[float, Mapping[str, float]]:
    """Return the cause's score without any feature, and the gain for each feature."""
    counts = _counts()
    total, found = counts.causes[cause], counts.features[cause]
    score, gained = math.log(total + UNSEEN), {}
    for feature, share in counts.shares.items():
        probable = (found[feature] + PRIOR_REPORTS * share) / (total + PRIOR_REPORTS)
        absent = ABSENT * math.log(1 - probable)
        score += absent
        gained[feature] = math.log(probable) - absent
    return score, gained


@cache
def _counts() -> Counts:
    """Return the counts over reports with a confirmed cause; a report with several causes counts once."""
    causes: defaultdict[str, float] = defaultdict(float)
    with_features: defaultdict[str, defaultdict[str, float]] = defaultdict(lambda: defaultdict(float))
    reports = load_table("confirmed_causes")["reports"]
    for report in reports:
        also = report.get("also", ())
        for cause in (report["cause"], *also):
            weight = (1 if cause == report["cause"] else ALSO) / (1 + ALSO * len(also))
            causes[cause] += weight
            for feature in report["features"]:
                with_features[cause][feature] += weight
    seen = Counter(feature for report in reports for feature in report["features"])
    return Counts(causes, with_features, {feature: (n + 1) / (len(reports) + 2) for feature, n in seen.items()})
